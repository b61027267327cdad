"""Divides a broker's rows into reports that fit one message of the exchange.

Law: whatever the numbers and names, the rows of one part need at most
`ExchangeBounds.part_bytes_max` on the wire. Sizes are upper bounds of a row (`ROW_BYTES_MAX` plus its group's name), not actual sizes.
A legal state is therefore never too large to send.

Changed rows may be divided anywhere: rows are absolute, and every part has its own sequence. A
whole state is divided by the hash of group and kind (`Span`). A receiver deletes the rows that a
part does not contain in its span. Each part is therefore independent, and after a loss only its
span needs repair.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import ALL_ROWS, Span
from rgd.core.policies.names import NAME_MAX

#: Most bytes of a row on the wire without its group's name: 51 for its columns, and 10 around a name
#: and its number.
ROW_BYTES_MAX: Final = 64


def parts_of_rows(
    rows: UsageColumns, bytes_max: int = BOUNDS.exchange.part_bytes_max
) -> Sequence[UsageColumns]:
    """Changed rows in as many parts as are needed; at least one part."""
    if len(rows) <= bytes_max // (ROW_BYTES_MAX + NAME_MAX):
        # They fit whatever their names are.
        return (rows,)
    return [rows.take(some) for some in _cut(_sizes(rows.groups), bytes_max)]


def parts_of_state(index: GroupIndex, slots: Ints) -> Iterator[tuple[Ints, Span]]:
    """A whole state, given by its slots, in as many parts as are needed; at least one part.

    Each is the slots of its rows, and the span whose rows are all included.
    """
    sizes = _sizes(index.names(slots))
    order = np.argsort(index.hashes[slots], kind="stable")
    slots, begin = slots[order], ALL_ROWS.begin
    for some in _cut(sizes[order], index.bounds.part_bytes_max):
        end = ALL_ROWS.end if some.stop == len(slots) else int(index.hashes[slots[some.stop]])
        yield slots[some], Span(begin, end)
        begin = end


def _sizes(groups: Sequence[str]) -> Ints:
    """[rows] the most bytes that a row of each of these groups needs."""
    return np.fromiter(map(len, groups), np.int64, len(groups)) + ROW_BYTES_MAX


def _cut(sizes: Ints, bytes_max: int) -> Iterator[slice]:
    """Runs of rows that are not larger together; at least one."""
    ends, begin = np.cumsum(sizes), 0
    while True:
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + bytes_max, side="right"))
        yield slice(begin, end)
        if end == len(sizes):
            return
        begin = end
