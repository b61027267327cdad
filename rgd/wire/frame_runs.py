"""Many entries of one producer at once, each in the bytes of `rgd.wire.frame.encode_entry`.

Law: `frame_run` gives the lengths and entries that `encode_stored(encode_entry(...))` gives one by one.

What stands before a payload is the same in all entries of a run, but for a length, a checksum and up to four
varints. So all of them are written as one array: copies of the first, with columns of bytes in these
places. Only the checksums are computed one after the other, in C. Where a varint needs another
byte, another array begins.
"""

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from rgd.wire.errors import Malformed, Oversize, Reason
from rgd.wire.frame import (
    ENTRY_MAX,
    MAGIC_BROKER_ENTRY_METADATA,
    MAGIC_CRC32C,
    METADATA_MAX,
    PAYLOAD_MAX,
    Entry,
    encode_entry,
    repeated_metadata,
)
from rgd.wire.segment import length_before

_U32_SIZE: Final = 4
_U64_MAX: Final = (1 << 64) - 1
_VARINT_BITS: Final = 7
_VARINT_MASK: Final = 0x7F
_VARINT_MORE: Final = 0x80
#: The least numbers that need 2, 3, ... bytes as a varint.
_LONGER: Final = np.array([1 << bits for bits in range(7, 64, 7)], np.uint64)

Numbers = NDArray[np.uint64]
Ints = NDArray[np.int64]
_Bytes = NDArray[np.uint8]


class Stamps(NamedTuple):
    """[entries] What differs from entry to entry; None: the broker does not add it."""

    sequence_ids: Numbers
    publish_times: Numbers
    broker_timestamps: Numbers | None
    indexes: Numbers | None


class Framed(NamedTuple):
    """Entries of a run, ready to be written."""

    #: By turns what stands before a payload, the length included, and the payload itself.
    pieces: list[bytes]
    #: [entries] bytes of each, the length included.
    sizes: Ints


class _Field(NamedTuple):
    """A varint of each entry, behind its tag."""

    tag: bytes
    numbers: Numbers


class _Layout(NamedTuple):
    """Where in the bytes before a payload the columns are."""

    template: bytes
    #: Of each varint, where it begins and ends.
    varints: list[tuple[int, int]]
    checksum_at: int


def consecutive(first: int, count: int) -> Numbers:
    """So many numbers from `first` on.

    Raises:
        Malformed: they need more than 64 bits.
    """
    if not 0 <= first <= _U64_MAX - count:
        raise Malformed(Reason.BAD_NUMBER, f"{first} is no unsigned number of 64 bits")
    return np.arange(count, dtype=np.uint64) + np.uint64(first)


def frame_run(
    producer_name: str,
    payloads: Sequence[bytes],
    stamps: Stamps,
    *,
    properties: tuple[tuple[str, str], ...] = (),
    unknown: bytes = b"",
) -> Framed:
    """Write entries that have all but payloads and stamps in common, without copying their payloads.

    Args:
        producer_name: of all of them.
        payloads: at least one.
        stamps: as many as payloads.
        properties: as `Entry.properties`.
        unknown: as `Entry.unknown`.

    Raises:
        Oversize: a part is larger than its limit.
        Malformed: a text does not fit the format.
    """
    name, described = repeated_metadata(producer_name, properties)
    broker = [
        _Field(tag, numbers)
        for tag, numbers in ((b"\x08", stamps.broker_timestamps), (b"\x10", stamps.indexes))
        if numbers is not None
    ]
    producer = [_Field(b"\x10", stamps.sequence_ids), _Field(b"\x18", stamps.publish_times)]
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    if sizes.max() > PAYLOAD_MAX:
        raise Oversize("payload", int(sizes.max()), PAYLOAD_MAX)
    widths = np.stack(
        [_LONGER.searchsorted(of.numbers, "right") + 1 for of in (*broker, *producer)]
    )
    changes = np.flatnonzero((widths[:, 1:] != widths[:, :-1]).any(axis=0)) + 1
    pieces: list[bytes] = []
    for begin, end in pairwise((0, *changes.tolist(), len(payloads))):
        some = slice(begin, end)
        layout = _layout(broker, producer, widths[:, begin].tolist(), (name, described + unknown))
        fields = [of.numbers[some] for of in (*broker, *producer)]
        sizes[some] += len(layout.template)
        heads = _heads(layout, fields, sizes[some], payloads[some])
        pieces += chain.from_iterable(zip(heads, payloads[some], strict=True))
    if sizes.max() - _U32_SIZE > ENTRY_MAX:
        raise Oversize("entry", int(sizes.max()) - _U32_SIZE, ENTRY_MAX)
    return Framed(pieces, sizes)


def frame_each(entries: Sequence[Entry]) -> Framed:
    """Write entries that have nothing in common.

    Raises:
        Oversize, Malformed: as `encode_entry`.
    """
    pieces: list[bytes] = []
    sizes: list[int] = []
    for entry in entries:
        data = encode_entry(entry)
        before = len(data) - len(entry.payload)
        pieces += (length_before(len(data)) + data[:before], entry.payload)
        sizes.append(_U32_SIZE + len(data))
    return Framed(pieces, np.array(sizes, np.int64))


def _layout(
    broker: list[_Field], producer: list[_Field], widths: list[int], around: tuple[bytes, bytes]
) -> _Layout:
    """The bytes before a payload, with zeros where entries differ."""
    name, rest = around
    varints: list[tuple[int, int]] = []
    head = bytearray(_U32_SIZE)
    widths_left = iter(widths)

    def add(fields: list[_Field]) -> None:
        for of in fields:
            head.extend(of.tag)
            varints.append((len(head), len(head) + next(widths_left)))
            head.extend(bytes(varints[-1][1] - len(head)))

    if broker:
        size = sum(len(of.tag) for of in broker) + sum(widths[: len(broker)])
        head += MAGIC_BROKER_ENTRY_METADATA + size.to_bytes(_U32_SIZE, "big")
        add(broker)
    head += MAGIC_CRC32C
    checksum_at = len(head)
    head += bytes(2 * _U32_SIZE) + name
    add(producer)
    head += rest
    metadata_at = checksum_at + 2 * _U32_SIZE
    size = len(head) - metadata_at
    if size > METADATA_MAX:
        raise Oversize("message metadata", size, METADATA_MAX)
    head[metadata_at - _U32_SIZE : metadata_at] = size.to_bytes(_U32_SIZE, "big")
    return _Layout(bytes(head), varints, checksum_at)


def _heads(
    layout: _Layout, fields: list[Numbers], sizes: Ints, payloads: Sequence[bytes]
) -> list[bytes]:
    """What stands before each payload; all varints of a field have the same width."""
    count, width = len(payloads), len(layout.template)
    heads: _Bytes = np.empty((count, width), np.uint8)
    heads[:] = np.frombuffer(layout.template, np.uint8)
    heads[:, :_U32_SIZE] = _u32(sizes - _U32_SIZE)
    for (begin, end), numbers in zip(layout.varints, fields, strict=True):
        _write_varints(heads[:, begin:end], numbers)
    begins = range(0, count * width, width)
    written = heads.tobytes()
    covered = layout.checksum_at + _U32_SIZE
    value, extend = google_crc32c.value, google_crc32c.extend
    checksums = [
        extend(value(written[begin + covered : begin + width]), payload)
        for begin, payload in zip(begins, payloads, strict=True)
    ]
    heads[:, layout.checksum_at : covered] = _u32(np.array(checksums))
    written = heads.tobytes()
    return [written[begin : begin + width] for begin in begins]


def _write_varints(columns: _Bytes, numbers: Numbers) -> None:
    """Write numbers that have the same number of bytes; numbers of a run have most of these in common."""
    least, most = int(numbers.min()), int(numbers.max())
    last = columns.shape[1] - 1
    for place in range(last + 1):
        more, shift = _VARINT_MORE if place < last else 0, _VARINT_BITS * place
        if least >> shift == most >> shift:
            columns[:, place] = (least >> shift) & _VARINT_MASK | more
        else:
            low = (numbers >> np.uint64(shift)).astype(np.uint8)
            low &= _VARINT_MASK
            low |= more
            columns[:, place] = low


def _u32(numbers: Ints) -> _Bytes:
    """[numbers, 4] big endian."""
    return numbers.astype(">u4").view(np.uint8).reshape(-1, _U32_SIZE)
