"""Rows of usage as bytes, as reports and the usage log both carry them (proto: UsageColumns).

Law: `decode_rows` gives back what `encode_rows` was given, for the same period, and neither takes
anything else: rows are in order (by group, publish before dispatch), a group has at most one row of
each kind, every column has a number for each row, or none where all are 0, and every count and rate
is 0 to `COUNT_MAX`, sums included.

Reports have their rates as codes (`rgd.wire.rate_columns`). A record has demand as its difference to
admitted work, which is mostly 0, and a rate that equals a whole count in the period as that count. `rgd.wire.keys` and `rgd.wire.name_dictionary` name or
number the groups.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from google.protobuf.message import Message

from rgd.core.exchange.columns import Codes, Flags, Ints, UsageColumns
from rgd.core.exchange.rate_words import CodedColumns
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S
from rgd.wire import rate_columns, usage_pb2
from rgd.wire.errors import Malformed, Reason
from rgd.wire.keys import read_keys, write_keys
from rgd.wire.varints import Unsigned, packed, unpacked, unzigzag, zigzag

#: A count times this, by the period in ns, is a rate.
SCALE: Final = float(MILLI * NS_PER_S)
#: Doubles are whole numbers without gaps up to here.
_EXACT_MAX: Final = 1 << 53
#: The columns of numbers below `kinds`, in the order that this module uses.
_NUMBERS: Final = (
    "topics",
    "admitted_messages",
    "admitted_bytes",
    "admitted_messages_counted",
    "admitted_bytes_counted",
    "unmet_messages",
    "unmet_bytes",
)


def encode_rows(rows: UsageColumns, proto: usage_pb2.UsageColumns, *, period_ns: int) -> None:
    """Write rows, which must be in order, into `proto`; `period_ns` is what their rates cover.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: a row comes twice or out of order, a name or number cannot be one, or columns are
            of different lengths.
    """
    write_keys(rows, proto)
    topics = checked(rows.topics, (len(rows),), "topics")
    admitted = checked(rows.admitted, (len(rows), 2), "admitted")
    wanted = checked(rows.wanted, (len(rows), 2), "wanted")
    counts = counts_of(admitted, period_ns)
    write_columns(
        proto,
        _NUMBERS,
        topics,
        np.where(counts > 0, 0, admitted),
        counts,
        zigzag(wanted - admitted),
    )


def decode_rows(proto: usage_pb2.UsageColumns, *, period_ns: int) -> UsageColumns:
    """Read rows; `period_ns` as they were written with.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: columns that do not fit together, or a name or number that cannot be one.
    """
    groups, kinds = read_keys(proto)
    numbers = read_columns(proto, _NUMBERS, len(groups))
    rates, counts, unmet = numbers[1:].reshape(3, 2, len(groups))
    admitted = _sum(as_counts(rates, "rates"), rates_of(counts, period_ns), "rates")
    return UsageColumns(
        groups=groups,
        kinds=kinds,
        topics=as_counts(numbers[0], "topics"),
        admitted=admitted,
        wanted=added(admitted, unmet, "wanted"),
    )


def write_amounts(rows: UsageColumns, proto: usage_pb2.UsageColumns) -> None:
    """Write everything of a report's rows but their groups and kinds.

    Raises:
        Malformed: columns of different lengths, a negative number, or a rate that is not rounded.
    """
    topics = checked(rows.topics, (len(rows),), "topics")
    checked(rows.admitted, (len(rows), 2), "admitted")
    checked(rows.wanted, (len(rows), 2), "wanted")
    rate_columns.write(rows, proto)
    write_columns(proto, _NUMBERS[:1], topics)


def read_amounts(
    proto: usage_pb2.UsageColumns, groups: Sequence[str], kinds: Codes
) -> CodedColumns:
    """Read everything else of a report's rows, whose groups and kinds are known."""
    topics = read_columns(proto, _NUMBERS[:1], len(groups))[0]
    words = rate_columns.read(proto, len(groups))
    return CodedColumns(groups, kinds, as_counts(topics, "topics"), words)


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
    pairs = np.empty((numbers.shape[1], 2), np.int64)
    # By `ascontiguousarray` it takes five times as long: numpy goes along the axis of two.
    pairs[:, 0], pairs[:, 1] = numbers
    return pairs


def counts_of(rates: Ints, period_ns: int) -> Ints:
    """The whole count that gives each rate exactly, 0 where there is none."""
    if period_ns == 0:
        return np.zeros_like(rates)
    counts = np.rint(rates * (period_ns / SCALE))
    made = np.floor(counts * (SCALE / period_ns))
    # Beyond 2^53 a double skips whole numbers, so equal doubles need not be equal rates.
    is_exact = (made == rates) & (made < _EXACT_MAX) & (counts < _EXACT_MAX)
    return np.where(is_exact, counts, 0).astype(np.int64)


def rates_of(counts: Unsigned, period_ns: int) -> Ints:
    """The rates that counts in the period give.

    Raises:
        Malformed: a rate is too large to be computed exactly.
    """
    most = int(counts.max(initial=0))
    if most == 0:
        return counts.view(np.int64)
    if period_ns == 0:
        raise Malformed(Reason.BAD_NUMBER, "counts: the period is 0")
    if most * (SCALE / period_ns) >= _EXACT_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"counts: a rate of {_EXACT_MAX} or more")
    return (counts * (SCALE / period_ns)).astype(np.int64)


def added(admitted: Ints, unmet: Unsigned, what: str) -> Ints:
    """[rows, 2] admitted work and [2, rows] unmet work (zigzagged, often all 0) together."""
    return _sum(admitted.T, unzigzag(unmet), what) if unmet.any() else admitted


def _sum(left: Ints, right: Ints, what: str) -> Ints:
    """Sums of [2, rows] side by side, from 0 to COUNT_MAX.

    `left` is not negative, so one that wraps around is.
    """
    pairs = np.empty(left.shape[::-1], np.int64)
    np.add(left, right, out=pairs.T)
    return checked(pairs, pairs.shape, what)
