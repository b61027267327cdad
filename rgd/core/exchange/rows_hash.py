"""A hash of rows that lets a receiver detect cheaply that it missed something.

Law: the hash of rows is the sum of their hashes, so their order does not matter, and a
change costs only the rows that changed. Totals are left out, because they change while a
row is held back as unchanged. The hash guards against loss, not against malice.

The mixing is that of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014, figure 17).
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex, Hashes
from rgd.core.exchange.rows import UsageRow

#: Hashes are sent as 63 bits.
HASH_MASK: Final = (1 << 63) - 1

# Arrays of one number, because numpy processes them twice as fast as its own scalars.
_GAMMA: Final = np.array(0x9E3779B97F4A7C15, np.uint64)
_STEPS: Final = (
    (np.array(30, np.uint64), np.array(0xBF58476D1CE4E5B9, np.uint64)),
    (np.array(27, np.uint64), np.array(0x94D049BB133111EB, np.uint64)),
)
_LAST_SHIFT: Final = np.array(31, np.uint64)


def row_hashes(keys: Hashes, topics: Ints, admitted: Ints, wanted: Ints) -> Hashes:
    """[rows] hashes of rows.

    Args:
        keys: [rows] hashes of group and kind.
        topics: [rows].
        admitted: [rows, 2] Milli per second.
        wanted: [rows, 2] likewise.
    """
    rates = np.concatenate((admitted.T, wanted.T))
    return hashes_of(terms_of(keys, topics, rates))


def terms_of(keys: Hashes, topics: Ints, rates: Ints) -> Hashes:
    """[5, rows] what rows are hashed from; those of several sets of rows are hashed in one pass.

    Args:
        keys: [rows] hashes of group and kind.
        topics: [rows].
        rates: [4, rows] Milli per second: admitted messages and bytes, wanted messages and bytes.
    """
    terms: Hashes = np.concatenate(((keys ^ topics.view(np.uint64))[None], rates.view(np.uint64)))
    return terms


def hashes_of(terms: Hashes) -> Hashes:
    """[rows] hashes of rows, from their terms."""
    hashes: Hashes = terms[0].copy()
    # One buffer for all steps, because allocating arrays costs time.
    spare = np.empty_like(hashes)
    _mix(hashes, spare)
    for column in terms[1:]:
        np.add(hashes, _GAMMA, hashes)
        np.bitwise_xor(hashes, column, hashes)
        _mix(hashes, spare)
    return hashes


def advertised_hash(rows: Iterable[UsageRow]) -> int:
    """Hash single rows; 63 bits, 0 for no rows."""
    columns = UsageColumns.of(*rows)
    index = GroupIndex()
    places = [index.slot(GroupKey(row.group, row.kind)) for row in columns]
    keys = index.hashes[np.array(places, np.int64)]
    return int(row_hashes(keys, columns.topics, columns.admitted, columns.wanted).sum()) & HASH_MASK


def _mix(values: Hashes, spare: Hashes) -> None:
    """Mix values in place; `spare` is a buffer of the same length and is overwritten."""
    for shift, factor in _STEPS:
        np.right_shift(values, shift, spare)
        np.bitwise_xor(values, spare, values)
        np.multiply(values, factor, values)
    np.right_shift(values, _LAST_SHIFT, spare)
    np.bitwise_xor(values, spare, values)
