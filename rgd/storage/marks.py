"""The sparse index of a segment: the offset and the time of every N-th entry.

    [u64 index][u64 timestamp, ms since 1970][u64 offset]      repeated, big endian

Law: the index only improves speed. A mark counts if the segment has the same data at its
offset (`is_true`). With missing or wrong marks everything is still found, only slower. `rgd.adapters.usagelog.index` writes them.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rgd.storage.headers import Readable, header_at
from rgd.wire.errors import WireError

#: Most of an index that is read; what lies behind is found without it.
INDEX_BYTES_MAX: Final = 24 << 20

_MARK: Final = struct.Struct(">QQQ")


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of the segment."""

    index: int
    timestamp: int
    offset: int


def encode_marks(marks: Iterable[Mark]) -> bytes:
    """Write marks."""
    return b"".join(_MARK.pack(mark.index, mark.timestamp, mark.offset) for mark in marks)


def decode_marks(data: bytes) -> list[Mark]:
    """The marks in the bytes of an index, up to the first that cannot follow the one before it."""
    whole = len(data) - len(data) % _MARK.size
    marks = [Mark(*fields) for fields in _MARK.iter_unpack(data[:whole])]
    for position, (before, mark) in enumerate(pairwise(marks), start=1):
        if not _may_follow(before, mark):
            return marks[:position]
    return marks


def is_true(source: Readable, mark: Mark) -> bool:
    """Whether the segment itself says the same.

    Raises:
        OSError: the segment cannot be read.
    """
    try:
        header = header_at(source, mark.offset)
    except (WireError, OverflowError):
        return False
    return (header.index, header.timestamp) == (mark.index, mark.timestamp)


def true_marks(source: Readable, marks: list[Mark]) -> list[Mark]:
    """The marks up to the last that is true: those behind a cut are not.

    Raises:
        OSError: the segment cannot be read.
    """
    for count in range(len(marks), 0, -1):
        if is_true(source, marks[count - 1]):
            return marks[:count]
    return []


def _may_follow(before: Mark, mark: Mark) -> bool:
    return (
        mark.index > before.index
        and mark.timestamp >= before.timestamp
        and mark.offset > before.offset
    )
