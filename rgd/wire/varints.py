"""Columns of numbers as packed varints, by numpy: bytes as protobuf's `repeated uint64` has them.

Law: `unpacked` gives back what `packed` was given, for numbers of 0 to 2^64 - 1, and whatever the
bytes, it answers with as many numbers for each column as there are rows, or raises `Malformed`.
What the numbers may be is the caller's business.

A column of nothing but 0 is no bytes at all. All columns are written and read at one go: what numpy
costs a report of few rows is the number of its calls. Reading takes some 12 times the bytes, which are
first held against the rows, so that a few rows cannot have megabytes of numbers.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Ints
from rgd.wire.errors import Malformed, Reason

Unsigned = NDArray[np.uint64]

#: Most bytes of one number; the tenth has one bit left.
VARINT_MAX: Final = 10
_BITS: Final = np.uint64(7)
_LOW_BITS: Final = np.uint64(0x7F)
_MORE: Final = 0x80
_LAST_MAX: Final = 1


def packed(numbers: Unsigned) -> list[bytes]:
    """The columns of [columns, rows] numbers as they are written: no bytes where all is 0."""
    columns: list[bytes] = [b""] * len(numbers)
    present = np.flatnonzero(numbers.any(axis=1))
    if not len(present):
        return columns
    rest = numbers[present].reshape(-1)
    sizes = np.ones(len(rest), np.int64)
    for bits in range(int(_BITS), int(rest.max()).bit_length(), int(_BITS)):
        sizes += rest >= np.uint64(1 << bits)
    ends = np.cumsum(sizes)
    at = ends - sizes
    laid = np.empty(ends[-1], np.uint8)
    while len(rest):
        follows = rest > _LOW_BITS
        laid[at] = (rest & _LOW_BITS).astype(np.uint8) | (follows.view(np.uint8) << 7)
        longer = follows.nonzero()[0]
        rest, at = rest[longer] >> _BITS, at[longer] + 1
    data, begin = laid.tobytes(), 0
    rows = numbers.shape[1]
    for place, end in zip(present.tolist(), ends[rows - 1 :: rows].tolist(), strict=True):
        columns[place] = data[begin:end]
        begin = end
    return columns


def unpacked(columns: Sequence[tuple[str, bytes]], rows: int) -> Unsigned:
    """[columns, rows] numbers; a column of no bytes is all 0.

    Args:
        columns: what each is called, and its bytes.
        rows: how many numbers each has.

    Raises:
        Malformed: a column is not so many varints, or a number has more than 64 bits.
    """
    for what, data in columns:
        if len(data) > VARINT_MAX * rows:
            raise Malformed(Reason.BAD_COLUMNS, f"{what}: {len(data)} bytes for {rows} rows")
    present = [place for place, (_, data) in enumerate(columns) if data]
    numbers = np.zeros((len(columns), rows), np.uint64)
    if present:
        raw = np.frombuffer(b"".join(columns[place][1] for place in present), np.uint8)
        ends = (raw < _MORE).nonzero()[0]
        _check_counts([columns[place] for place in present], ends, rows)
        numbers[present] = _numbers(raw, ends).reshape(len(present), rows)
    return numbers


def zigzag(numbers: Ints) -> Unsigned:
    """Signed numbers as protobuf's sint64 has them: small ones stay small."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def unzigzag(numbers: Unsigned) -> Ints:
    """Signed numbers again."""
    return (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)


def _check_counts(columns: Sequence[tuple[str, bytes]], ends: Ints, rows: int) -> None:
    """Each column ends with the last byte of a number, and has `rows` of them."""
    borders = list(accumulate(len(data) for _, data in columns))
    if len(ends) == len(columns) * rows and (ends[rows - 1 :: rows] + 1).tolist() == borders:
        return
    counts = np.diff(np.searchsorted(ends, borders), prepend=0)
    for (what, _), count in zip(columns, counts.tolist(), strict=True):
        if count != rows:
            raise Malformed(Reason.BAD_COLUMNS, f"{what}: {count} values for {rows} rows")
    raise Malformed(Reason.BAD_COLUMNS, "a column ends within a number")


def _numbers(raw: NDArray[np.uint8], ends: Ints) -> Unsigned:
    """The numbers whose last bytes are at `ends`."""
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    following = ends - starts
    longest = int(following.max())
    if longest >= VARINT_MAX - 1:
        tenths = raw[starts[following >= VARINT_MAX - 1] + VARINT_MAX - 1]
        if longest >= VARINT_MAX or tenths.max() > _LAST_MAX:
            raise Malformed(Reason.BAD_NUMBER, "a number has more than 64 bits")
    low = raw & np.uint8(_LOW_BITS)
    numbers = low[starts].astype(np.uint64)
    for place in range(1, longest + 1):
        longer = (following >= place).nonzero()[0]
        numbers[longer] |= low[starts[longer] + place].astype(np.uint64) << (
            _BITS * np.uint64(place)
        )
    return numbers
