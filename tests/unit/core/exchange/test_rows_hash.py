"""The hash of single rows, number by number: it is on the wire, so it must stay what it is.

Not covered: what the hash of a broker's rows tells (test_usage_map.py).
"""

from rgd.core.units import Kind
from tests.support.columns import advertised_hash
from tests.unit.core.values import usage


def test_the_hash_of_these_rows_is_on_the_wire_already() -> None:
    rows = [usage(10), usage(5, 4, group="trial", size=7), usage(7, kind=Kind.DISPATCH, topics=3)]
    assert advertised_hash(rows) == 0x2A8A5E39DF9A0BC3
