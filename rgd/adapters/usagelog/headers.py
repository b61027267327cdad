"""Iterates over a segment's entries and reads only the part of each that the broker added.

Law: seeking by time costs a few dozen bytes an entry, whatever the payloads are (PIP-70). An entry is
read completely, for its publish time, only if the broker added no timestamp.
`walk` follows the lengths. After an invalid length `SegmentReader` finds the next
complete entry; it is the only code in this project that skips damage.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rgd.wire.errors import TornFrame, WireError
from rgd.wire.frame import (
    BROKER_METADATA_MAX,
    PEEK_SIZE,
    decode_entry,
    peek_broker_entry_metadata,
)
from rgd.wire.segment import LENGTH_SIZE, SegmentReader, Stored, decode_length

#: Bytes read at once where entries are read completely.
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The properties of an entry without its payload."""

    #: Offset of its length, in bytes from the start of the segment.
    offset: int
    #: In bytes, with the length before it.
    size: int
    #: None where the broker set none.
    index: int | None
    #: Milliseconds since 1970: the broker's, otherwise the producer's.
    timestamp: int

    @property
    def end(self) -> int:
        """The offset of the next entry."""
        return self.offset + self.size


def header_of(stored: Stored) -> Header:
    """The header of an entry that was read completely."""
    return Header(
        offset=stored.offset,
        size=LENGTH_SIZE + len(stored.data),
        index=stored.entry.index,
        timestamp=stored.entry.timestamp,
    )


def header_at(descriptor: int, offset: int) -> Header:
    """Read the header of the entry whose length is at `offset`.

    Raises:
        WireError: no complete entry starts there, according to its header.
        OSError: the file cannot be read.
    """
    head = os.pread(descriptor, LENGTH_SIZE + PEEK_SIZE, offset)
    length = decode_length(head)
    start = offset + LENGTH_SIZE
    try:
        broker = peek_broker_entry_metadata(head[LENGTH_SIZE : LENGTH_SIZE + length])
    except TornFrame:
        # The broker wrote fields that Pulsar does not know.
        more = os.pread(descriptor, min(length, PEEK_SIZE + BROKER_METADATA_MAX), start)
        broker = peek_broker_entry_metadata(more)
    if broker is not None and broker.broker_timestamp is not None:
        _require_whole(descriptor, start, length)
        return Header(offset, LENGTH_SIZE + length, broker.index, broker.broker_timestamp)
    data = os.pread(descriptor, length, start)
    if len(data) < length:
        raise TornFrame("entry", length, len(data))
    entry = decode_entry(data)
    return Header(offset, LENGTH_SIZE + length, entry.index, entry.timestamp)


def walk(descriptor: int, offset: int = 0) -> Iterator[Header]:
    """The headers of all whole entries from `offset` on, where a length must stand.

    Raises:
        OSError: the file cannot be read.
    """
    while True:
        try:
            header = header_at(descriptor, offset)
        except WireError:
            following = _whole_entry_after(descriptor, offset)
            if following is None:
                return
            header = following
        yield header
        offset = header.end


def read_chunks(descriptor: int, offset: int, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a file from `offset` to `end`, or to where it ends now.

    Raises:
        OSError: the file cannot be read.
    """
    stop = os.fstat(descriptor).st_size if end is None else end
    while offset < stop and (
        chunk := os.pread(descriptor, min(CHUNK_BYTES, stop - offset), offset)
    ):
        offset += len(chunk)
        yield chunk


def _require_whole(descriptor: int, start: int, length: int) -> None:
    """Refuse an entry that its file ends within; its last byte tells."""
    if not os.pread(descriptor, 1, start + length - 1):
        raise TornFrame("entry", length, os.fstat(descriptor).st_size - start)


def _whole_entry_after(descriptor: int, offset: int) -> Header | None:
    reader = SegmentReader(offset)
    for chunk in read_chunks(descriptor, offset):
        for found in reader.feed(chunk):
            if isinstance(found, Stored):
                return header_of(found)
    for found in reader.finish():
        if isinstance(found, Stored):
            return header_of(found)
    return None
