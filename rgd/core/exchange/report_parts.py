"""Divides a broker's rows into reports that fit one message of the exchange.

Law: whatever the numbers and names, the rows of one part need at most
`ExchangeBounds.part_bytes_max` on the wire. Sizes are upper bounds of a row (`ROW_BYTES_MAX` plus its group's name), not actual sizes.
A legal state is therefore never too large to send.

Changed rows may be divided anywhere: rows are absolute, and every part has its own sequence. A
whole state is divided by the hash of group and kind (`Span`). A receiver deletes the rows that a
part does not contain in its span. Each part is therefore independent, and after a loss only its
span needs repair.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import ALL_ROWS, Span
from rgd.core.policies.names import NAME_MAX

#: Most bytes of a row on the wire without its group's name: 51 for its columns, and 10 around a name
#: and its number.
ROW_BYTES_MAX: Final = 64


class StatePart(NamedTuple):
    """Part of a whole state: the slots of its rows, and the span whose rows are all included."""

    slots: Ints
    span: Span


def parts_of_rows(
    rows: UsageColumns, bytes_max: int = BOUNDS.exchange.part_bytes_max
) -> Sequence[UsageColumns]:
    """Changed rows in as many parts as are needed; at least one part."""
    if len(rows) <= bytes_max // (ROW_BYTES_MAX + NAME_MAX):
        # They fit whatever their names are.
        return (rows,)
    sizes = np.fromiter(map(len, rows.groups), np.int64, len(rows)) + ROW_BYTES_MAX
    ends = np.cumsum(sizes)
    parts, begin = [], 0
    while begin < len(rows):
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + bytes_max, side="right"))
        parts.append(rows.between(begin, end))
        begin = end
    return parts


def part_of_state(index: GroupIndex, slots: Ints, begin: int) -> StatePart:
    """The part of a state, given by its slots, that begins at the hash `begin`.

    The span of the last part ends at 2^64.
    """
    bytes_max = index.bounds.part_bytes_max
    sizes = index.name_bytes[slots].astype(np.int64) + ROW_BYTES_MAX
    if begin == 0 and sizes.sum() <= bytes_max:
        return StatePart(slots, ALL_ROWS)
    hashes = index.hashes[slots]
    left = np.flatnonzero(hashes >= np.uint64(begin))
    # No more rows fit, however short their names are.
    rows_max = bytes_max // ROW_BYTES_MAX
    if len(left) > rows_max:
        # Selection scans all remaining hashes, but only the rows that may fit are sorted.
        left = left[np.argpartition(hashes[left], rows_max)[: rows_max + 1]]
    left = left[np.argsort(hashes[left], kind="stable")]
    count = int(np.searchsorted(np.cumsum(sizes[left]), bytes_max, side="right"))
    if count == len(left):
        return StatePart(slots[left], Span(begin))
    end = max(begin + 1, int(hashes[left[count]]))
    return StatePart(slots[left[:count]], Span(begin, end))
