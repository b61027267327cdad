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

from rgd.storage.ranges import Ranges
from rgd.wire.errors import TornFrame, WireError
from rgd.wire.frame import (
    BROKER_METADATA_MAX,
    PEEK_SIZE,
    decode_entry,
    peek_broker_entry_metadata,
)
from rgd.wire.segment import LENGTH_SIZE, Found, SegmentReader, Stored, decode_length

#: Bytes read at once where entries are read completely.
CHUNK_BYTES: Final = 1 << 20


#: A segment that can be read: a file's descriptor, or what is fetched, which raises what its place raises.
Readable = int | Ranges


def pread(source: Readable, size: int, offset: int) -> bytes:
    """At most `size` bytes from `offset` on.

    Raises:
        OSError, TierError: they cannot be read.
    """
    if isinstance(source, int):
        return os.pread(source, size, offset)
    return source.read(size, offset)


def size_of(source: Readable) -> int:
    """Bytes that are there now.

    Raises:
        OSError, TierError: it cannot be told.
    """
    return os.fstat(source).st_size if isinstance(source, int) else source.size()


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


def header_at(source: Readable, offset: int) -> Header:
    """Read the header of the entry whose length stands at `offset`.

    Raises:
        WireError: no complete entry starts there, according to its header.
        OSError: the file cannot be read.
    """
    head = pread(source, LENGTH_SIZE + PEEK_SIZE, offset)
    length = decode_length(head)
    start = offset + LENGTH_SIZE
    try:
        broker = peek_broker_entry_metadata(head[LENGTH_SIZE : LENGTH_SIZE + length])
    except TornFrame:
        # The broker wrote fields that Pulsar does not know.
        more = pread(source, min(length, PEEK_SIZE + BROKER_METADATA_MAX), start)
        broker = peek_broker_entry_metadata(more)
    if broker is not None and broker.broker_timestamp is not None:
        if not pread(source, 1, start + length - 1):
            # Its file ends within it; its last byte tells.
            raise TornFrame("entry", length, size_of(source) - start)
        return Header(offset, LENGTH_SIZE + length, broker.index, broker.broker_timestamp)
    data = pread(source, length, start)
    if len(data) < length:
        raise TornFrame("entry", length, len(data))
    entry = decode_entry(data)
    return Header(offset, LENGTH_SIZE + length, entry.index, entry.timestamp)


def walk(source: Readable, offset: int = 0) -> Iterator[Header]:
    """The headers of all whole entries from `offset` on, where a length must stand.

    Raises:
        OSError: the file cannot be read.
    """
    while True:
        try:
            header = header_at(source, offset)
        except WireError:
            following = _whole_entry_after(source, offset)
            if following is None:
                return
            header = following
        yield header
        offset = header.end


def read_chunks(source: Readable, offset: int, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a file from `offset` to `end`, or to where it ends now.

    Raises:
        OSError: the file cannot be read.
    """
    stop = size_of(source) if end is None else end
    while offset < stop and (chunk := pread(source, min(CHUNK_BYTES, stop - offset), offset)):
        offset += len(chunk)
        yield chunk


def read_found(source: Readable, offset: int = 0, end: int | None = None) -> Iterator[Found]:
    """What a segment has from `offset`, where a length must stand, to `end`: entries, damage, an incomplete end.

    Raises:
        OSError: the file cannot be read.
    """
    reader = SegmentReader(offset)
    for chunk in read_chunks(source, offset, end):
        yield from reader.feed(chunk)
    yield from reader.finish()


def _whole_entry_after(source: Readable, offset: int) -> Header | None:
    found = (one for one in read_found(source, offset) if isinstance(one, Stored))
    return next(map(header_of, found), None)
