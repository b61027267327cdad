"""Rows of usage as bytes, as reports and the usage log both carry them (proto: UsageColumns).

Law: `decode_rows` gives back what `encode_rows` was given, for the same period, and neither takes
anything else: rows are in order (by group, publish before dispatch), a group has at most one row of
each kind, every column has a number for each row, or none where all are 0, and every count and rate
is 0 to `COUNT_MAX`, sums included.

What was wanted is written as its difference to what was admitted, mostly 0. A rate that some whole
count in the period gives is written as that count: a meter's rates are of that kind, and compressed
counts take less than two thirds of the bytes. Groups are named in a string table in front: numbers
in place of names, with the names sent apart, are not in this version.
"""

from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import Final

import numpy as np
from google.protobuf.message import Message

from rgd.core.exchange.columns import KINDS, Codes, Flags, Ints, UsageColumns
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S
from rgd.wire import usage_pb2
from rgd.wire.checks import check_groups
from rgd.wire.errors import Malformed, Oversize, Reason
from rgd.wire.varints import Unsigned, packed, unpacked, unzigzag, zigzag

#: Most rows that one message or record may have; 5,000 groups (PIP-82's case) make 10,000.
ROWS_MAX: Final = 65_536

#: A count times this, by the period in ns, is a rate.
_SCALE: Final = float(MILLI * NS_PER_S)
#: Doubles are whole numbers without gaps up to here.
_EXACT_MAX: Final = 1 << 53
#: The value of `kinds` for a group with a row of each.
_BOTH: Final = 3

#: The columns of numbers below `kinds`, in the order in which they are reckoned with here.
_NUMBERS: Final = (
    "topics",
    "admitted_messages",
    "admitted_bytes",
    "admitted_messages_counted",
    "admitted_bytes_counted",
    "unmet_messages",
    "unmet_bytes",
    "admitted_messages_total",
    "admitted_bytes_total",
    "unmet_messages_total",
    "unmet_bytes_total",
)


def is_in_order(rows: UsageColumns) -> bool:
    """Whether rows are by group, publish before dispatch (a row may come twice)."""
    groups = list(rows.groups)
    if groups != sorted(groups):
        return False
    falls = np.flatnonzero(rows.kinds[1:] < rows.kinds[:-1])
    return all(groups[place] != groups[place + 1] for place in falls.tolist())


def encode_rows(rows: UsageColumns, proto: usage_pb2.UsageColumns, *, period_ns: int) -> None:
    """Write rows, which must be in order, into `proto`; `period_ns` is what their rates cover.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: a row comes twice or out of order, a name or number cannot be one, or columns are
            of different lengths.
    """
    _check_rows(len(rows))
    groups, bits = _encode_keys(rows)
    admitted = checked(rows.admitted, (len(rows), 2), "admitted")
    wanted = checked(rows.wanted, (len(rows), 2), "wanted")
    admitted_total = checked(rows.admitted_total, (len(rows), 2), "admitted total")
    wanted_total = checked(rows.wanted_total, (len(rows), 2), "wanted total")
    counts = _counts_of(admitted, period_ns)
    proto.groups.extend(groups)
    proto.kinds = bits.tobytes()
    write_columns(
        proto,
        _NUMBERS,
        checked(rows.topics, (len(rows),), "topics"),
        np.where(counts > 0, 0, admitted),
        counts,
        zigzag(wanted - admitted),
        admitted_total,
        zigzag(wanted_total - admitted_total),
    )


def decode_rows(proto: usage_pb2.UsageColumns, *, period_ns: int) -> UsageColumns:
    """Read rows; `period_ns` as they were written with.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: columns that do not fit together, or a name or number that cannot be one.
    """
    groups, kinds = _decode_keys(proto)
    numbers = read_columns(proto, _NUMBERS, len(groups))
    rates, counts, unmet, totals, unmet_totals = numbers[1:].reshape(5, 2, len(groups))
    admitted = _sum(as_counts(rates, "rates"), _rates_of(counts, period_ns), "rates")
    admitted_total = as_counts(totals, "totals")
    return UsageColumns(
        groups=groups,
        kinds=kinds,
        topics=as_counts(numbers[0], "topics"),
        admitted=side_by_side(admitted),
        wanted=side_by_side(_sum(admitted, unzigzag(unmet), "wanted")),
        admitted_total=side_by_side(admitted_total),
        wanted_total=side_by_side(_sum(admitted_total, unzigzag(unmet_totals), "wanted total")),
    )


def checked(numbers: Ints, shape: tuple[int, ...], what: str) -> Ints:
    """Return `numbers` if they are as many as there are rows, and none is negative."""
    if numbers.shape != shape:
        raise Malformed(Reason.BAD_COLUMNS, f"{what}: {numbers.shape} values for {shape}")
    if numbers.min(initial=0) < 0:
        raise Malformed(Reason.BAD_NUMBER, f"{what}: expected numbers from 0 to {COUNT_MAX}")
    return numbers


def write_columns(
    proto: Message, names: Sequence[str], *numbers: Ints | Unsigned | Codes | Flags
) -> None:
    """Set fields of `proto` to columns: [rows] is one of `names`, [rows, 2] are the next two."""
    columns = np.concatenate([np.atleast_2d(part.T).astype(np.uint64) for part in numbers])
    for name, column in zip(names, packed(columns), strict=True):
        setattr(proto, name, column)


def read_columns(proto: Message, names: Sequence[str], rows: int) -> Unsigned:
    """[names, rows] numbers from fields of `proto`, whatever they are.

    Raises:
        Malformed: a column has not as many numbers as there are rows.
    """
    return unpacked([(name, getattr(proto, name)) for name in names], rows)


def as_counts(numbers: Unsigned, what: str) -> Ints:
    """Numbers from 0 to COUNT_MAX.

    Raises:
        Malformed: they are not.
    """
    return checked(numbers.view(np.int64), numbers.shape, what)


def side_by_side(numbers: Ints) -> Ints:
    """[2, rows] to [rows, 2], as the core has messages and bytes."""
    return np.ascontiguousarray(numbers.T)


def _counts_of(rates: Ints, period_ns: int) -> Ints:
    """The whole count that gives each rate exactly, 0 where there is none."""
    if period_ns == 0:
        return np.zeros_like(rates)
    counts = np.rint(rates * (period_ns / _SCALE))
    made = np.floor(counts * (_SCALE / period_ns))
    # Beyond 2^53 a double skips whole numbers, so equal doubles need not be equal rates.
    is_exact = (made == rates) & (made < _EXACT_MAX) & (counts < _EXACT_MAX)
    return np.where(is_exact, counts, 0).astype(np.int64)


def _rates_of(counts: Unsigned, period_ns: int) -> Ints:
    if not counts.any():
        return counts.view(np.int64)
    if period_ns == 0:
        raise Malformed(Reason.BAD_NUMBER, "counts: the period is 0")
    made = np.floor(counts * (_SCALE / period_ns))
    if made.max() >= _EXACT_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"counts: a rate of {_EXACT_MAX} or more")
    rates: Ints = made.astype(np.int64)
    return rates


def _sum(left: Ints, right: Ints, what: str) -> Ints:
    """Sums from 0 to COUNT_MAX; `left` is not negative, so one that wraps around is."""
    return checked(left + right, left.shape, what)


def _is_new(rows: UsageColumns) -> Flags:
    """[rows] whether a row's group is not that of the row before."""
    is_new = np.ones(len(rows), np.bool_)
    if rows.kinds.any() and not rows.kinds.all():  # of one kind alone, no group has two rows
        groups = rows.groups
        is_new[1:] = np.fromiter(map(ne, groups[1:], groups), np.bool_, len(rows) - 1)
    return is_new


def _encode_keys(rows: UsageColumns) -> tuple[Sequence[str], Codes]:
    """The groups, and for each the kinds it has a row of."""
    kinds = rows.kinds
    if kinds.shape != (len(rows),):
        raise Malformed(Reason.BAD_COLUMNS, f"kinds: {kinds.shape} for {len(rows)} rows")
    if kinds.max(initial=0) >= len(KINDS):
        raise Malformed(Reason.BAD_NUMBER, f"kinds: expected places below {len(KINDS)}")
    is_new = _is_new(rows)
    again = np.flatnonzero(~is_new)
    faulty = again[kinds[again] <= kinds[again - 1]]
    if len(faulty):
        place = int(faulty[0])
        fault = Reason.DUPLICATE if kinds[place] == kinds[place - 1] else Reason.BAD_STRUCTURE
        raise Malformed(fault, f"rows: {rows.groups[place]!r} comes twice or out of order")
    groups = rows.groups if is_new.all() else tuple(compress(rows.groups, is_new))
    check_groups(groups)
    bits = (kinds + 1)[is_new]
    bits[np.cumsum(is_new)[again] - 1] = _BOTH
    return groups, bits


def _decode_keys(proto: usage_pb2.UsageColumns) -> tuple[tuple[str, ...], Codes]:
    """Group and kind of each row."""
    if len(proto.groups) != len(proto.kinds):
        raise Malformed(
            Reason.BAD_COLUMNS, f"kinds: {len(proto.kinds)} for {len(proto.groups)} groups"
        )
    _check_rows(len(proto.groups))
    bits = np.frombuffer(proto.kinds, np.uint8)
    if len(bits) and not 1 <= bits.min() <= bits.max() <= _BOTH:
        raise Malformed(Reason.BAD_NUMBER, "kinds: expected 1, 2 or 3")
    groups = tuple(proto.groups[:])
    check_groups(groups)
    has_both = bits == _BOTH
    if not has_both.any():
        return groups, bits - 1
    rows_of = has_both + 1
    _check_rows(int(rows_of.sum()))
    kinds = np.repeat(np.where(has_both, 0, bits - 1).astype(np.uint8), rows_of)
    kinds[np.cumsum(rows_of)[has_both] - 1] = 1
    return tuple(np.repeat(np.array(groups, np.object_), rows_of).tolist()), kinds


def _check_rows(count: int) -> None:
    if count > ROWS_MAX:
        raise Oversize("rows", count, ROWS_MAX)
