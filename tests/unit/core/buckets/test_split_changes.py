"""What becomes of parts when their group changes: its share, mode, depth, namespace, existence.

Not covered: what the parts are (test_split.py), and that all together stay within the share
(tests/property/test_topic_split.py).
"""

from rgd.core.units import Dimension
from tests.unit.core.buckets.split_house import (
    EVEN,
    PROPORTIONAL,
    START,
    A,
    B,
    House,
    gold,
    parts_of,
)


def test_even_becomes_proportional_with_tokens_and_debt() -> None:
    house = House(gold(EVEN))
    house.ask(B, 0)
    house.ask(A, 1000)
    before = [part.remaining(Dimension.MESSAGES, START) for part in parts_of(house.split(), START)]
    house.put(gold(PROPORTIONAL))
    after = [part.remaining(Dimension.MESSAGES, START) for part in parts_of(house.split(), START)]
    assert (house.split().mode, after) == (PROPORTIONAL, before)
    assert not house.ask(A).granted
