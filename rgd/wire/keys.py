"""The groups and kinds of rows: names in order and, for each, its kinds (proto: UsageColumns).

Law: `read_keys` returns the input of `write_keys`, and neither accepts a row twice: names are in
strictly ascending order, and a group has at most one row of each kind, publish before dispatch.

Reports use numbers in place of names: `rgd.wire.name_dictionary`, which writes the kinds in the same way.
"""

from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import Final

import numpy as np

from rgd.core.exchange.columns import KINDS, Codes, Flags, Ints, UsageColumns
from rgd.wire import usage_pb2
from rgd.wire.checks import check_groups
from rgd.wire.errors import Malformed, Reason
from rgd.wire.parts import check_size

#: Most rows that one message or record may have; 5,000 groups (PIP-82's case) make 10,000.
ROWS_MAX: Final = 65_536

#: The value of `kinds` for a group with a row of each.
_BOTH: Final = 3


def is_in_order(rows: UsageColumns) -> bool:
    """Whether rows are by group, publish before dispatch (a row may come twice)."""
    groups = list(rows.groups)
    if groups != sorted(groups):
        return False
    falls = np.flatnonzero(rows.kinds[1:] < rows.kinds[:-1])
    return all(groups[place] != groups[place + 1] for place in falls.tolist())


def write_keys(rows: UsageColumns, proto: usage_pb2.UsageColumns) -> None:
    """Write the groups' names, and for each the kinds it has a row of."""
    check_rows(len(rows))
    _check_kinds(rows)
    is_new = _is_new(rows)
    _check_distinct(rows, is_new)
    groups = rows.groups if is_new.all() else tuple(compress(rows.groups, is_new))
    check_groups(groups)
    proto.groups.extend(groups)
    proto.kinds = kinds_of(rows.kinds, is_new)


def read_keys(proto: usage_pb2.UsageColumns) -> tuple[tuple[str, ...], Codes]:
    """Group and kind of each row."""
    # Counted before any becomes an object.
    check_rows(len(proto.groups))
    groups = tuple(proto.groups[:])
    place, kinds = read_kinds(proto, len(groups))
    check_groups(groups)
    if len(place) == len(groups):
        return groups, kinds
    return tuple(np.array(groups, np.object_)[place].tolist()), kinds


def kinds_of(kinds: Codes, is_new: Flags) -> bytes:
    """For each group the kinds it has a row of; `is_new` marks the first row of each."""
    bits = (kinds + 1)[is_new]
    bits[np.cumsum(is_new)[~is_new] - 1] = _BOTH
    return bits.tobytes()


def read_kinds(proto: usage_pb2.UsageColumns, count: int) -> tuple[Ints, Codes]:
    """Of each row: the place of its group among `count`, and its kind."""
    if count != len(proto.kinds):
        raise Malformed(Reason.BAD_COLUMNS, f"kinds: {len(proto.kinds)} for {count} groups")
    bits = np.frombuffer(proto.kinds, np.uint8)
    if count and not 1 <= bits.min() <= bits.max() <= _BOTH:
        raise Malformed(Reason.BAD_NUMBER, "kinds: expected 1, 2 or 3")
    has_both = bits == _BOTH
    if not has_both.any():
        return np.arange(count), bits - 1
    rows_of = has_both + 1
    check_rows(int(rows_of.sum()))
    kinds = np.repeat(np.where(has_both, 0, bits - 1).astype(np.uint8), rows_of)
    kinds[np.cumsum(rows_of)[has_both] - 1] = 1
    return np.repeat(np.arange(count), rows_of), kinds


def check_rows(count: int) -> None:
    """Refuse too many rows."""
    check_size("rows", count, ROWS_MAX)


def _check_kinds(rows: UsageColumns) -> None:
    kinds = rows.kinds
    if kinds.shape != (len(rows),):
        raise Malformed(Reason.BAD_COLUMNS, f"kinds: {kinds.shape} for {len(rows)} rows")
    if kinds.max(initial=0) >= len(KINDS):
        raise Malformed(Reason.BAD_NUMBER, f"kinds: expected places below {len(KINDS)}")


def _check_distinct(rows: UsageColumns, is_new: Flags) -> None:
    kinds = rows.kinds
    again = np.flatnonzero(~is_new)
    faulty = again[kinds[again] <= kinds[again - 1]]
    if len(faulty):
        place = int(faulty[0])
        fault = Reason.DUPLICATE if kinds[place] == kinds[place - 1] else Reason.BAD_STRUCTURE
        raise Malformed(fault, f"rows: {rows.groups[place]!r} comes twice or out of order")


def _is_new(rows: UsageColumns) -> Flags:
    """[rows] whether a row's group is not that of the row before."""
    is_new = np.ones(len(rows), np.bool_)
    if rows.kinds.any() and not rows.kinds.all():  # of one kind alone, no group has two rows
        groups: Sequence[str] = rows.groups
        is_new[1:] = np.fromiter(map(ne, groups[1:], groups), np.bool_, len(rows) - 1)
    return is_new
