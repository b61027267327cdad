"""A hash of rows that lets a receiver find out cheaply that it missed something.

Law: the hash of rows is the sum of their hashes, so it knows no order, and a
change costs only the rows that changed. Totals are left out: they move while a
row is held back as unchanged. It guards against loss, not against malice.

The mixing is that of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014, figure 17).
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex, Hashes
from rgd.core.exchange.rows import UsageRow

#: Hashes go on the wire as 63 bits.
HASH_MASK: Final = (1 << 63) - 1

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))


def row_hashes(keys: Hashes, topics: Ints, admitted: Ints, wanted: Ints) -> Hashes:
    """[rows] hashes of rows.

    Args:
        keys: [rows] hashes of group and kind.
        topics: [rows].
        admitted: [rows, 2] Milli per second.
        wanted: [rows, 2] likewise.
    """
    hashes = _mixed(keys ^ topics.view(np.uint64))
    for amounts in (admitted, wanted):
        for column in amounts.T:
            hashes = _mixed(hashes + _GAMMA ^ np.ascontiguousarray(column).view(np.uint64))
    return hashes


def told_hash(rows: Iterable[UsageRow]) -> int:
    """Hash single rows; 63 bits, 0 for no rows."""
    columns = UsageColumns.of(*rows)
    index = GroupIndex()
    places = [index.place(GroupKey(row.group, row.kind)) for row in columns]
    keys = index.hashes[np.array(places, np.int64)]
    return int(row_hashes(keys, columns.topics, columns.admitted, columns.wanted).sum()) & HASH_MASK


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _SHIFTS[0])) * _FIRST
    values = (values ^ (values >> _SHIFTS[1])) * _SECOND
    mixed: Hashes = values ^ (values >> _SHIFTS[2])
    return mixed
