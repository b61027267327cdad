"""What becomes of parts when their group changes: its share, mode, depth, namespace, existence.

Not covered: what the parts are (test_split.py), and that all together stay within the share
(tests/property/test_topic_split.py).
"""

from dataclasses import replace

from rgd.core.units import Dimension, Nanos
from tests.unit.core.buckets.split_house import (
    EVEN,
    PROPORTIONAL,
    SHARED,
    START,
    A,
    B,
    C,
    House,
    gold,
    parts_of,
)
from tests.unit.core.values import key, ms, rates


class TestChanges:
    def test_another_share_is_divided_at_once(self) -> None:
        house = House(gold(EVEN))
        for topic in (A, B):
            house.ask(topic)
        house.limiter.set_share(key("gold"), rates(10), Nanos(house.now))
        assert house.parts() == [5, 5]
        # What is above the new depth goes.
        assert (house.drain(A), house.drain(B)) == (1, 1)

    def test_a_raise_gives_no_tokens(self) -> None:
        house = House(gold(EVEN, 10))
        for topic in (A, B):
            house.drain(topic)
        house.limiter.set_share(key("gold"), rates(1000), Nanos(house.now))
        assert (house.drain(A), house.drain(B)) == (0, 0)

    def test_even_becomes_proportional_with_tokens_and_debt(self) -> None:
        house = House(gold(EVEN))
        house.ask(B, 0)
        house.ask(A, 1000)
        before = [
            part.remaining(Dimension.MESSAGES, START) for part in parts_of(house.split(), START)
        ]
        house.put(gold(PROPORTIONAL))
        after = [
            part.remaining(Dimension.MESSAGES, START) for part in parts_of(house.split(), START)
        ]
        assert (house.split().mode, after) == (PROPORTIONAL, before)
        assert not house.ask(A).granted

    def test_a_divided_share_that_becomes_shared_keeps_what_was_taken(self) -> None:
        house = House(gold(EVEN))
        house.ask(A, 100)
        house.ask(B, 20)
        house.put(gold(SHARED))
        assert house.drain(C) == 130

    def test_a_shared_one_is_divided_with_the_tokens_it_has(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 100)
        house.put(gold(EVEN))
        assert house.drain(B) == 150

    def test_a_shared_one_in_debt_pays_it_first(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 1750)
        house.put(gold(EVEN))
        house.round(B)
        assert house.parts() == [1000]
        house.pass_ms(500)
        assert house.drain(B) == 0
        house.pass_ms(100)
        assert house.drain(B) == 100

    def test_a_deleted_groups_parts_go_with_it(self) -> None:
        house = House(gold(EVEN))
        house.drain(A)
        house.put(replace(gold(EVEN), name="other"), namespace="other")
        assert house.limiter.split_of(key("gold")) is None
        house.put(gold(EVEN))
        assert house.drain(A) == 250

    def test_a_namespace_that_moves_is_charged_in_one_group_alone(self) -> None:
        groups = (gold(EVEN), replace(gold(EVEN), name="trial"))
        house = House(*groups)
        house.ask(A, 100)
        house.put(*groups, namespace="trial")
        assert house.drain(A) == 250
        house.put(*groups, namespace="gold")
        assert house.drain(A) == 150

    def test_another_burst_is_divided_too(self) -> None:
        house = House(gold(EVEN))
        for topic in (A, B):
            house.ask(topic, 0)
        house.limiter.set_depth(ms(100), START)
        assert (house.drain(A), house.drain(B)) == (50, 50)
        assert house.parts() == [500, 500]
        house.limiter.set_depth(ms(1000), START)
        assert (house.drain(A), house.drain(B)) == (0, 0)

    def test_a_share_without_depth_grants_one_request_and_not_one_a_topic(self) -> None:
        house = House()
        house.limiter.set_depth(0, START)
        house.put(gold(EVEN))
        assert (house.drain(A), house.drain(B)) == (1, 0)
        house.limiter.set_depth(ms(250), START)
        house.round()
        assert (house.drain(A), house.drain(B)) == (125, 125)
        assert house.parts() == [500, 500]
