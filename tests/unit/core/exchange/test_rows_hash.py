"""The hash of single rows, number by number: it is on the wire, so it must stay what it is.

Not covered: what the hash of a broker's rows tells (test_usage_map.py).
"""

import numpy as np
import pytest

from rgd.core.exchange.rows_hash import row_hashes
from rgd.core.units import Kind
from tests.support.columns import advertised_hash
from tests.unit.core.values import usage

WORD = 1 << 64
#: As far as rates go, and topics.
MOST = (1 << 63) - 1


def mixed(value: int) -> int:
    """SplitMix64 in whole numbers (Steele, Lea & Flood, OOPSLA 2014, figure 17)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % WORD
    return value ^ (value >> 31)


def row_hash(key: int, topics: int, amounts: list[int]) -> int:
    """The hash of one row: its key and topics, and then one amount after another."""
    value = mixed(key ^ topics)
    for amount in amounts:
        value = mixed((value + 0x9E3779B97F4A7C15) % WORD ^ amount)
    return value


@pytest.mark.parametrize("count", [0, 1, 300])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_hashed_as_whole_numbers_would_be(count: int, order: str) -> None:
    dice = np.random.default_rng(count)
    keys = dice.integers(0, WORD - 1, count, np.uint64)
    topics = dice.integers(0, 1 << 62, count)
    admitted, wanted = dice.integers(0, MOST, (2, count, 2))
    before = (keys.copy(), topics.copy(), admitted.copy(), wanted.copy())
    inside = np.asarray(admitted, order=order), np.asarray(wanted, order=order)  # type: ignore[call-overload]
    rates = np.concatenate([pairs.T for pairs in inside])
    found = row_hashes(keys, topics, rates).tolist()
    rows = zip(keys, topics, np.hstack((admitted, wanted)), strict=True)
    assert found == [row_hash(int(key), int(count), row.tolist()) for key, count, row in rows]
    for array, was in zip((keys, topics, admitted, wanted), before, strict=True):
        assert array.tolist() == was.tolist()


def test_the_hash_of_these_rows_is_on_the_wire_already() -> None:
    rows = [usage(10), usage(5, 4, group="trial", size=7), usage(7, kind=Kind.DISPATCH, topics=3)]
    assert advertised_hash(rows) == 0x2A8A5E39DF9A0BC3
