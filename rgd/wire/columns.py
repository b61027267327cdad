"""Columns of numbers as bytes, and the amounts of a report's rows (proto: UsageColumns).

Law: a reader takes only what a writer writes: every column of varints has a number for each row, or none where all
are 0, and every count and rate is 0 to `COUNT_MAX`.

Reports have their rates as codes (`rgd.wire.rate_columns`), records as differences and counts
(`rgd.wire.chain`). `rgd.wire.keys` and `rgd.wire.name_dictionary` name or number the groups.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from rgd.core.exchange.columns import Codes, Flags, Ints, UsageColumns
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S
from rgd.wire import rate_columns, usage_pb2
from rgd.wire.errors import Malformed, Reason
from rgd.wire.varints import Unsigned, packed, unpacked

Floats = NDArray[np.floating[Any]]

#: A count times this, by the period in ns, is a rate.
SCALE: Final = float(MILLI * NS_PER_S)
#: Doubles are whole numbers without gaps up to here.
_EXACT_MAX: Final = 1 << 53
_TOPICS: Final = ("topics",)


def write_amounts(rows: UsageColumns, proto: usage_pb2.UsageColumns) -> None:
    """Write everything of a report's rows but their groups and kinds.

    Raises:
        Malformed: columns of different lengths, a negative number, or a rate that is not rounded.
    """
    topics = checked(rows.topics, (len(rows),), "topics")
    checked(rows.admitted, (len(rows), 2), "admitted")
    checked(rows.wanted, (len(rows), 2), "wanted")
    rate_columns.write(rows, proto)
    write_columns(proto, _TOPICS, topics)


def read_amounts(
    proto: usage_pb2.UsageColumns, groups: Sequence[str], kinds: Codes
) -> UsageColumns:
    """Read everything else of a report's rows, whose groups and kinds are known."""
    topics = read_columns([proto], _TOPICS, [len(groups)])[0]
    admitted, wanted = rate_columns.read(proto, len(groups))
    return UsageColumns(groups, kinds, as_counts(topics, "topics"), admitted, wanted)


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


def read_columns(protos: Sequence[Message], names: Sequence[str], rows: Sequence[int]) -> Unsigned:
    """[names, all rows] numbers from fields of each of `protos`, whatever they are.

    Raises:
        Malformed: a column has not as many numbers as its message has rows.
    """
    columns = [column for name in names for column in map(attrgetter(name), protos)]
    return unpacked(names, columns, [*rows] * len(names)).reshape(len(names), sum(rows))


def as_counts(numbers: Unsigned, what: str) -> Ints:
    """Numbers from 0 to COUNT_MAX.

    Raises:
        Malformed: they are not.
    """
    return checked(numbers.view(np.int64), numbers.shape, what)


def counts_of(rates: Ints, period_ns: int) -> Ints:
    """The whole count that gives each rate exactly, 0 where there is none."""
    if period_ns == 0:
        return np.zeros_like(rates)
    counts = np.rint(rates * (period_ns / SCALE))
    made = np.floor(counts * (SCALE / period_ns))
    # Beyond 2^53 a double skips whole numbers, so equal doubles need not be equal rates.
    is_exact = (made == rates) & (made < _EXACT_MAX) & (counts < _EXACT_MAX)
    return np.where(is_exact, counts, 0).astype(np.int64)


def rates_of(counts: Unsigned, period_ns: Floats) -> Ints:
    """The rates that counts in the periods give.

    Raises:
        Malformed: a rate is too large to be computed exactly.
    """
    if not counts.any():
        return counts.view(np.int64)
    if counts[..., period_ns == 0].any():
        raise Malformed(Reason.BAD_NUMBER, "counts: the period is 0")
    made = counts * (SCALE / np.maximum(period_ns, 1.0))
    if made.max() >= _EXACT_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"counts: a rate of {_EXACT_MAX} or more")
    return made.astype(np.int64)
