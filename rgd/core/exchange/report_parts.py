"""Divides what a broker sends into reports that fit one message of the exchange.

Law: whatever the rows' numbers and names are, the rows of one part need at most `PART_BYTES_MAX` on the
wire: sizes are the most that a row may need (`ROW_BYTES_MAX` and its group's name), not what it needs.
So a legal state is never too large to send.

Rows that changed are cut where they stand: rows are absolute, and every part has a sequence of its own.
A whole state is cut by the hash of group and kind (`Span`): a receiver forgets what a part does not
name in its span, so each part stands for itself, and a lost one leaves only its span to be repaired.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import ALL_ROWS, Span
from rgd.core.policies.names import NAME_MAX

#: Most bytes of a row on the wire without its group's name: its columns, 91, and what stands around a
#: name and its number, 10. Totals included.
ROW_BYTES_MAX: Final = 104

#: Most bytes of the rows of one report: below `rgd.ports.exchange.PAYLOAD_BYTES_MAX` by more than the
#: rest of a report needs.
PART_BYTES_MAX: Final = 1_000_000

#: So many rows fit, whatever their names are; and no more than so many, however short.
_ROWS_SURE: Final = PART_BYTES_MAX // (ROW_BYTES_MAX + NAME_MAX)
_ROWS_MAX: Final = PART_BYTES_MAX // ROW_BYTES_MAX


class StatePart(NamedTuple):
    """Part of a whole state: slots of its rows, and the span that they are all of."""

    slots: Ints
    span: Span


def parts_of_rows(rows: UsageColumns) -> Sequence[UsageColumns]:
    """Rows that changed, in as many parts as are needed; at least one."""
    if len(rows) <= _ROWS_SURE:
        return (rows,)
    sizes = np.fromiter(map(len, rows.groups), np.int64, len(rows)) + ROW_BYTES_MAX
    ends = np.cumsum(sizes)
    parts, begin = [], 0
    while begin < len(rows):
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + PART_BYTES_MAX, side="right"))
        parts.append(rows.between(begin, end))
        begin = end
    return parts


def part_of_state(index: GroupIndex, slots: Ints, begin: int) -> StatePart:
    """The part of a state, of which these are the slots, that begins at a hash.

    Its span ends at 2^64 where it is the last one.
    """
    sizes = index.name_bytes[slots].astype(np.int64) + ROW_BYTES_MAX
    if begin == 0 and sizes.sum() <= PART_BYTES_MAX:
        return StatePart(slots, ALL_ROWS)
    hashes = index.hashes[slots]
    left = np.flatnonzero(hashes >= np.uint64(begin))
    if len(left) > _ROWS_MAX:
        # A look at the whole rest, but sorted is only what may fit.
        left = left[np.argpartition(hashes[left], _ROWS_MAX)[: _ROWS_MAX + 1]]
    left = left[np.argsort(hashes[left], kind="stable")]
    count = int(np.searchsorted(np.cumsum(sizes[left]), PART_BYTES_MAX, side="right"))
    if count == len(left):
        return StatePart(slots[left], Span(begin))
    end = max(begin + 1, int(hashes[left[count]]))
    return StatePart(slots[left[:count]], Span(begin, end))
