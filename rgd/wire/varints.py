"""Columns of numbers as packed varints, by numpy: bytes as protobuf's `repeated uint64` has them.

Law: `unpacked` gives back what `packed` was given, for numbers of 0 to 2^64 - 1, and whatever the
bytes, it answers with as many numbers for each column as there are rows, or raises `Malformed`.
What the numbers may be is the caller's business.

A column of nothing but 0 is no bytes at all. All columns are written and read at one go: what numpy
costs a report of few rows is the number of its calls. Numbers are read by words of four bytes, and
only those that are longer are looked at again. Reading takes some 20 times the bytes (46 where all
are numbers of one byte), which are first held against the rows, so that a few rows cannot have
megabytes of numbers.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Flags, Ints
from rgd.wire.errors import Malformed, Reason

Unsigned = NDArray[np.uint64]

#: Most bytes of one number; the tenth has one bit left.
VARINT_MAX: Final = 10
#: A column of more numbers, of one byte each, is read alone.
ALONE_MIN: Final = 16
_BITS: Final = np.uint64(7)
_LOW_BITS: Final = np.uint64(0x7F)
_MORE: Final = 0x80

_WORD: Final = np.dtype("<u4")
_WORD_BYTES: Final = 4
#: Bits of the number in a word.
_WORD_BITS: Final = np.uint64(28)
_MORE_OF_WORD: Final = np.uint32(0x80808080)
#: The third word at most: a byte that another one follows, and that one's bit.
_THIRD_WORD_MAX: Final = 0x1FF
#: How a word's groups of 7 bits are joined: those that stay, those that move, and by how many bits.
_JOINTS: Final = (
    (np.uint32(0x007F007F), np.uint32(0x7F007F00), np.uint32(1)),
    (np.uint32(0x00003FFF), np.uint32(0x3FFF0000), np.uint32(2)),
)


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


def unpacked(names: Sequence[str], columns: Sequence[bytes], rows: Sequence[int]) -> Unsigned:
    """The numbers of all columns, one column after another; one of no bytes is all 0.

    Args:
        names: what the columns are called; each name is that of as many columns in a row.
        columns: their bytes.
        rows: how many numbers each has.

    Raises:
        Malformed: a column is not so many varints, or a number has more than 64 bits.
    """
    counts = np.array(rows, np.int64)
    sizes = np.fromiter(map(len, columns), np.int64, len(columns))
    borders = np.cumsum(counts)
    numbers = np.zeros(borders[-1] if len(borders) else 0, np.uint64)
    is_read = sizes > 0
    for place in (is_read & (sizes == counts) & (counts > ALONE_MIN)).nonzero()[0].tolist():
        if columns[place].isascii():
            # Every number is one byte, as of most columns of topics.
            end, is_read[place] = borders[place], False
            numbers[end - counts[place] : end] = np.frombuffer(columns[place], np.uint8)
    present = is_read.nonzero()[0]
    if len(present):
        _check(names, sizes > VARINT_MAX * counts, sizes, counts, "bytes")
        data = b"".join([columns[place] for place in present.tolist()])
        ends = (np.frombuffer(data, np.uint8) < _MORE).nonzero()[0]
        _check_counts(names, present, sizes, counts, ends)
        own = counts[present]
        before = np.repeat(borders[present] - np.cumsum(own), own)
        numbers[before + np.arange(len(ends))] = _numbers(data, ends)
    return numbers


def zigzag(numbers: Ints) -> Unsigned:
    """Signed numbers as protobuf's sint64 has them: small ones stay small."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def unzigzag(numbers: Unsigned) -> Ints:
    """Signed numbers again."""
    turned = -(numbers & np.uint64(1))
    turned ^= numbers >> np.uint64(1)
    return turned.view(np.int64)


def _check_counts(
    names: Sequence[str], present: Ints, sizes: Ints, counts: Ints, ends: Ints
) -> None:
    """Each present column ends with the last byte of a number, and has as many of them as it should."""
    borders, lasts = np.cumsum(sizes[present]), np.cumsum(counts[present])
    if len(ends) == lasts[-1] and np.array_equal(ends[lasts - 1] + 1, borders):
        return
    found = counts.copy()
    found[present] = np.diff(np.searchsorted(ends, borders), prepend=0)
    _check(names, found != counts, found, counts, "values")
    raise Malformed(Reason.BAD_COLUMNS, "a column ends within a number")


def _check(names: Sequence[str], faulty: Flags, found: Ints, counts: Ints, of: str) -> None:
    """Refuse the first faulty column."""
    for place in faulty.nonzero()[0][:1].tolist():
        what = names[place * len(names) // len(counts)]
        raise Malformed(Reason.BAD_COLUMNS, f"{what}: {found[place]} {of} for {counts[place]} rows")


def _numbers(data: bytes, ends: Ints) -> Unsigned:
    """The numbers whose last bytes are at `ends`."""
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    padded = data + bytes(_WORD_BYTES - 1)
    words = np.ndarray(len(data), _WORD, padded, strides=(1,))
    return _read(np.ascontiguousarray(words), starts, 0)


def _read(words: NDArray[np.uint32], places: Ints, words_before: int) -> Unsigned:
    """The numbers at these places, less the words of them that were read before.

    Args:
        words: [bytes] the word that begins at each byte.
        places: [numbers] where each goes on.
        words_before: 0 to 2.
    """
    word = words.take(places)
    # A bit for each byte that is some number's last. Below the lowest of them is this number, and
    # one less than they are has all bits there; where there is none, it has all there are.
    last = ~word
    last &= _MORE_OF_WORD
    longer = (last == 0).nonzero()[0]
    last -= np.uint32(1)
    word &= last
    if words_before == 2 and word.max() > _THIRD_WORD_MAX:
        raise Malformed(Reason.BAD_NUMBER, "a number has more than 64 bits")
    moved = last
    for stays, moves, gap in _JOINTS:
        np.bitwise_and(word, moves, out=moved)
        moved >>= gap
        word &= stays
        word |= moved
    numbers = word.astype(np.uint64)
    if len(longer):
        rest = _read(words, places[longer] + _WORD_BYTES, words_before + 1)
        numbers[longer] |= rest << _WORD_BITS
    return numbers
