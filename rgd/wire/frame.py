"""One entry of a log, in the bytes in which Apache Pulsar stores one (PIP-70).

    [0e02][u32 size][BrokerEntryMetadata]                           what the broker added
    [0e01][u32 crc32c][u32 metadata size][MessageMetadata][payload]     what the producer wrote

All integers are big endian. The first line may be absent (a broker without the feature), and so may
`[0e01][u32 crc32c]` (a producer without checksums). The CRC32C covers everything behind itself, so
nothing protects the first line but its own structure; Pulsar's code has it so.

Law: `encode_entry(decode_entry(data)) == data` for every entry that Pulsar writes; fields that we do not know
travel along, those of MessageMetadata in `Entry.unknown`, those of BrokerEntryMetadata in its own `unknown`. Seeking by time reads the first line
only (`peek_broker_entry_metadata`). Entries in files are in `rgd.wire.segment`; what a payload means
is in `rgd.wire.record`.
"""

from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from rgd.errors import Unavailable
from rgd.wire.checks import check_utf8
from rgd.wire.compression import LOG_RATIO_MAX, compressed, decompressed
from rgd.wire.entry_pb2 import BrokerEntryMetadata as BrokerEntryMetadataProto
from rgd.wire.entry_pb2 import MessageMetadata, PayloadCompression
from rgd.wire.errors import ChecksumMismatch, Malformed, Reason, TornFrame
from rgd.wire.parts import (
    MAGIC_BROKER_ENTRY_METADATA,
    MAGIC_CRC32C,
    MAGIC_SIZE,
    U32,
    broker_part,
    check_size,
    checksummed,
    parsed,
    sized,
)

#: Of Pulsar's CompressionType.
_NO_COMPRESSION: Final = 0
_ZSTD: Final = 3

#: Largest parts of an entry, in bytes. Pulsar's own largest message is 5 MiB.
PAYLOAD_MAX: Final = 5 * 1024 * 1024
METADATA_MAX: Final = 256 * 1024
#: A payload is stored compressed if that takes at most this part of it: to open a frame takes 36 µs, a quarter
#: of what reading a record of 25 rows does.
WORTH_MAX: Final = 0.8
BROKER_METADATA_MAX: Final = 4 * 1024

#: A magic and a number.
_HEAD: Final = MAGIC_SIZE + U32.size

#: Largest entry, in bytes.
ENTRY_MAX: Final = 2 * _HEAD + BROKER_METADATA_MAX + U32.size + METADATA_MAX + PAYLOAD_MAX
#: Smallest entry: a metadata size, and the three required fields with the shortest values.
ENTRY_MIN: Final = U32.size + 6
#: As many of an entry's first bytes as `peek_broker_entry_metadata` needs for Pulsar's two fields.
PEEK_SIZE: Final = _HEAD + 22


def require_fast_crc32c(implementation: str) -> None:
    """Refuse google-crc32c's silent fallback to Python: it is some hundred times slower."""
    if implementation != "c":
        raise Unavailable(
            "google-crc32c was installed without its C extension; "
            "reinstall it from a wheel: pip install --force-reinstall google-crc32c"
        )


require_fast_crc32c(google_crc32c.implementation)


# Entries are not frozen, because one that is takes five times as long to make, and a log has millions.
@dataclass(slots=True, unsafe_hash=True)
class BrokerEntryMetadata:
    """What a broker adds to an entry; absent values are None."""

    #: Milliseconds since 1970, by the broker's clock.
    broker_timestamp: int | None = None
    #: Position of the entry's last message in the log, from 0.
    index: int | None = None
    #: Fields that Pulsar does not know, as protobuf writes them.
    unknown: bytes = b""


@dataclass(slots=True, unsafe_hash=True)
class Entry:
    """An entry as it is stored. Times are milliseconds since 1970."""

    producer_name: str
    sequence_id: int
    #: By the producer's clock.
    publish_time: int
    #: As it is stored; `plain_payload` undoes its compression.
    payload: bytes = b""
    #: In the order written; of two with one key the later counts.
    properties: tuple[tuple[str, str], ...] = ()
    #: None: the entry has no first part.
    broker: BrokerEntryMetadata | None = None
    #: Fields of MessageMetadata that rgd does not know, encoded as they came.
    unknown: bytes = b""
    #: Whether a CRC32C protects metadata and payload.
    is_checksummed: bool = True

    @property
    def broker_timestamp(self) -> int | None:
        """The broker's timestamp, None where it set none."""
        return self.broker.broker_timestamp if self.broker else None

    @property
    def index(self) -> int | None:
        """The index, None where the broker set none."""
        return self.broker.index if self.broker else None

    @property
    def timestamp(self) -> int:
        """When it was written: the broker's time, else the producer's (PIP-70)."""
        stamped = self.broker_timestamp
        return self.publish_time if stamped is None else stamped

    def property_of(self, key: str) -> str | None:
        """The value of a property, None where there is none."""
        return next((value for name, value in reversed(self.properties) if name == key), None)


def encode_entry(entry: Entry) -> bytes:
    """Write an entry.

    Raises:
        Oversize: a part is larger than its limit.
        Malformed: a number or a text does not fit the format.
    """
    return _encode_broker_part(entry.broker) + _encode_before_payload(entry) + entry.payload


def decode_entry(data: bytes) -> Entry:
    """Read an entry whole, and check its CRC32C if it has one.

    Raises:
        TornFrame: `data` ends early.
        ChecksumMismatch: it is not what was written.
        Oversize: a part is larger than its limit.
        Malformed: it is not an entry.
    """
    check_size("entry", len(data), ENTRY_MAX)
    start, broker = _read_broker_part(data)
    covered, checksum = checksummed(data, start)
    if checksum is not None and google_crc32c.value(data[covered:]) != checksum:
        raise ChecksumMismatch(start + MAGIC_SIZE)
    begin, end = sized(data, covered, "message metadata", METADATA_MAX)
    check_size("payload", len(data) - end, PAYLOAD_MAX)
    metadata = parsed(MessageMetadata, data[begin:end], "message metadata")
    if not metadata.IsInitialized():
        raise Malformed(Reason.MISSING, "message metadata: a required field is missing")
    return Entry(
        producer_name=check_utf8(metadata.producer_name, "producer name"),
        sequence_id=metadata.sequence_id,
        publish_time=metadata.publish_time,
        payload=data[end:],
        properties=tuple(
            (check_utf8(pair.key, "property"), check_utf8(pair.value, "property"))
            for pair in metadata.properties
        ),
        broker=broker,
        unknown=_unknown_of(metadata),
        is_checksummed=checksum is not None,
    )


def peek_broker_entry_metadata(data: bytes) -> BrokerEntryMetadata | None:
    """Read only what the broker added; None where it added nothing.

    `data` may be cut off anywhere behind that part; `PEEK_SIZE` bytes are enough unless the broker
    writes fields that Pulsar does not know.

    Raises:
        TornFrame: `data` ends before the part does.
        Oversize: the part is larger than its limit.
        Malformed: the part is not BrokerEntryMetadata.
    """
    if len(data) < MAGIC_SIZE:
        raise TornFrame("entry", MAGIC_SIZE, len(data))
    return _read_broker_part(data)[1]


def compressed_payload(body: bytes) -> tuple[bytes, bytes]:
    """What to store as `Entry.payload` and `Entry.unknown` for a payload: compressed where it pays."""
    frame = compressed(body, ratio_max=LOG_RATIO_MAX)
    if frame is None or len(frame) > WORTH_MAX * len(body):
        return body, b""
    metadata = PayloadCompression(compression=_ZSTD, uncompressed_size=len(body))
    return frame, metadata.SerializeToString()


def plain_payload(entry: Entry) -> bytes:
    """The payload of an entry, without the compression that its metadata names.

    Raises:
        Oversize: it would be larger than `PAYLOAD_MAX`.
        Malformed: it is not what the metadata says, or compressed by other means than zstd.
    """
    if not entry.unknown:
        return entry.payload
    stated = parsed(PayloadCompression, entry.unknown, "message metadata")
    if stated.compression == _NO_COMPRESSION:
        return entry.payload
    if stated.compression != _ZSTD:
        raise Malformed(
            Reason.BAD_STRUCTURE, f"payload: compression {stated.compression} is not known"
        )
    body = decompressed(entry.payload, PAYLOAD_MAX, ratio_max=LOG_RATIO_MAX)
    if len(body) != stated.uncompressed_size:
        raise Malformed(
            Reason.BAD_STRUCTURE,
            f"payload: {len(body)} bytes instead of {stated.uncompressed_size}",
        )
    return body


def headers_and_payload(data: bytes) -> bytes:
    """Strip what the broker added: what a reader outside rgd gets (Pulsar's headersAndPayload).

    Raises:
        WireError: the broker's part cannot be read; the rest is not looked into.
    """
    return data[_read_broker_part(data)[0] :]


def check_own_fields(fields: bytes) -> bytes:
    """Refuse what no reader could take for further fields of BrokerEntryMetadata; returns them.

    Raises:
        Malformed: it is not what protobuf writes, or it has fields that are Pulsar's own.
        Oversize: no entry could take it.
    """
    what = "own broker entry metadata"
    check_size(what, len(fields), BROKER_METADATA_MAX)
    if parsed(BrokerEntryMetadataProto, fields, what).ListFields():
        raise Malformed(
            Reason.BAD_STRUCTURE,
            f"{what}: expected fields above 2, the others are Pulsar's",
        )
    return fields


def _encode_broker_part(broker: BrokerEntryMetadata | None) -> bytes:
    if broker is None:
        return b""
    what = "broker entry metadata"
    body = _serialized(
        what,
        BrokerEntryMetadataProto,
        broker_timestamp=broker.broker_timestamp,
        index=broker.index,
    )
    body += broker.unknown
    check_size(what, len(body), BROKER_METADATA_MAX)
    return MAGIC_BROKER_ENTRY_METADATA + U32.pack(len(body)) + body


def _encode_before_payload(entry: Entry) -> bytes:
    """What the producer wrote, up to the payload."""
    what = "message metadata"
    metadata = _serialized(
        what,
        MessageMetadata,
        producer_name=entry.producer_name,
        sequence_id=entry.sequence_id,
        publish_time=entry.publish_time,
        properties=[{"key": key, "value": value} for key, value in entry.properties],
    )
    metadata += entry.unknown
    check_size(what, len(metadata), METADATA_MAX)
    check_size("payload", len(entry.payload), PAYLOAD_MAX)
    covered = U32.pack(len(metadata)) + metadata
    if not entry.is_checksummed:
        return covered
    checksum = google_crc32c.extend(google_crc32c.value(covered), entry.payload)
    return MAGIC_CRC32C + U32.pack(checksum) + covered


def _serialized(what: str, form: type[Message], **fields: Any) -> bytes:
    try:
        return form(**fields).SerializeToString()
    except UnicodeEncodeError as exc:
        raise Malformed(Reason.BAD_NAME, f"{what}: {exc}") from exc
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, f"{what}: {exc}") from exc


def _read_broker_part(data: bytes) -> tuple[int, BrokerEntryMetadata | None]:
    """Where the producer's part starts, and what the broker said."""
    begin, end = broker_part(data, BROKER_METADATA_MAX)
    if not end:
        return 0, None
    body = parsed(BrokerEntryMetadataProto, data[begin:end], "broker entry metadata")
    timestamp = body.broker_timestamp if body.HasField("broker_timestamp") else None
    index = body.index if body.HasField("index") else None
    return end, BrokerEntryMetadata(timestamp, index, _unknown_of(body))


def _unknown_of(message: Message) -> bytes:
    """The fields of a message that we do not know; clears those that we do where there are such."""
    # Most entries have none, and to ask first takes a twentieth of the time.
    if not len(UnknownFieldSet(message)):
        return b""
    for field, _ in message.ListFields():
        message.ClearField(field.name)
    return message.SerializePartialToString()
