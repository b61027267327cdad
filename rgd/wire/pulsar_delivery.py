"""The messages of one entry that a Pulsar broker delivers to a reader; anybody may have published it.

    [0e02][u32 size][BrokerEntryMetadata]                             only if the broker is so configured
    [0e01][u32 crc32c][u32 metadata size][MessageMetadata][payload]
    a batch's payload: [u32 size][SingleMessageMetadata][payload] for each message

Law: `read_delivery` never raises. Memory and time are bounded by the limits below, whatever the entry declares: a
size is checked before anything of it is allocated. No message of an entry with a fault is returned.
Why not pulsar-client's own reader: it trusts all of these numbers, and a wrong one ends the process
(`docs/decisions/0042-rgd-reads-pulsar-itself.md`).
The connection is in `rgd.adapters.exchange.pulsar_reader`, its commands are in `rgd.wire.pulsar_commands`.
"""

from typing import Final, NamedTuple

import google_crc32c

from rgd.wire.api_pb2 import DeliveredMetadata, SingleMessageMetadata
from rgd.wire.errors import ChecksumMismatch, Malformed, Reason, TornFrame, WireError
from rgd.wire.parts import (
    U32,
    broker_part,
    check_size,
    checksummed,
    parsed,
    sized,
)

#: Largest payload of an entry, compressed or not, in bytes; Pulsar's own default.
PAYLOAD_MAX: Final = 5 << 20
#: As large, because the broker counts the messages of a batch that large metadata declare.
METADATA_MAX: Final = PAYLOAD_MAX
#: Most messages of a batch; Pulsar's clients send up to 1,000.
BATCH_MESSAGES_MAX: Final = 16_384

#: The index of a message that is in no batch.
NO_BATCH: Final = -1

_NONE: Final = 0
_LZ4: Final = 1


class DeliveredMessage(NamedTuple):
    """One message."""

    #: Its index in the batch, or NO_BATCH.
    batch_index: int
    #: "" if it has none.
    key: str
    #: b"" for a tombstone.
    payload: bytes


class Delivered(NamedTuple):
    """What a delivered entry contains."""

    messages: tuple[DeliveredMessage, ...]
    #: As how many messages the broker counted it; so many permits a reader returns. Pulsar counts an entry whose
    #: metadata cannot be read as one.
    permits: int
    #: By the clock of whoever sent it, in milliseconds since 1970.
    published_ms: int = 0
    #: Why it cannot be read; None if it can.
    fault: WireError | None = None


def read_delivery(data: bytes) -> Delivered:
    """Read an entry as it is delivered behind its command."""
    permits = 1
    try:
        start, checksum = checksummed(data, broker_part(data, METADATA_MAX)[1])
        begin, end = sized(data, start, "message metadata", METADATA_MAX)
        metadata = parsed(DeliveredMetadata, data[begin:end], "metadata")
        permits = max(metadata.num_messages_in_batch, 1)
        if checksum is not None and google_crc32c.value(data[start:]) != checksum:
            raise ChecksumMismatch(start - U32.size)
        check_size("payload", len(data) - end, PAYLOAD_MAX)
        # Markers are Pulsar's own, and not for readers.
        is_marker = metadata.HasField("marker_type")
        messages = () if is_marker else _messages(metadata, data[end:])
        return Delivered(messages, permits, metadata.publish_time)
    except WireError as fault:
        return Delivered((), permits, fault=fault)


def _messages(metadata: DeliveredMetadata, payload: bytes) -> tuple[DeliveredMessage, ...]:
    if metadata.encryption_keys:
        raise Malformed(Reason.BAD_STRUCTURE, "message: encrypted, and rgd encrypts nothing")
    if metadata.num_chunks_from_msg > 1:
        raise Malformed(Reason.BAD_STRUCTURE, "message: a chunk, and rgd sends none")
    plain = _plain(metadata, payload)
    if metadata.HasField("num_messages_in_batch"):
        return _batch(metadata.num_messages_in_batch, plain)
    return (DeliveredMessage(NO_BATCH, _text(metadata.partition_key), plain),)


def _plain(metadata: DeliveredMetadata, payload: bytes) -> bytes:
    """The payload without its compression."""
    if metadata.compression == _NONE:
        return payload
    size = metadata.uncompressed_size
    check_size("payload, decompressed", size, PAYLOAD_MAX)
    if metadata.compression != _LZ4:
        text = f"payload: compression {metadata.compression}; expected none or LZ4"
        raise Malformed(Reason.UNPARSABLE, text)
    # Only stock brokers compress so: rgd alone works without the library.
    import lz4.block  # noqa: PLC0415

    try:
        plain: bytes = lz4.block.decompress(payload, uncompressed_size=size)
    except (lz4.block.LZ4BlockError, ValueError) as exc:
        raise Malformed(Reason.UNPARSABLE, f"compressed payload: {exc}") from exc
    if len(plain) != size:
        text = f"compressed payload: {len(plain)} bytes, said to be {size}"
        raise Malformed(Reason.BAD_STRUCTURE, text)
    return plain


def _batch(count: int, plain: bytes) -> tuple[DeliveredMessage, ...]:
    check_size("messages of a batch", count, BATCH_MESSAGES_MAX)
    messages, position = [], 0
    for index in range(count):
        begin, end = sized(plain, position, "metadata in a batch", METADATA_MAX)
        single = parsed(SingleMessageMetadata, plain[begin:end], "metadata")
        position = end + single.payload_size
        if single.payload_size < 0 or position > len(plain):
            raise TornFrame("payload in a batch", position, len(plain))
        if not single.compacted_out:
            key = _text(single.partition_key)
            messages.append(DeliveredMessage(index, key, plain[end:position]))
    return tuple(messages)


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as exc:
        raise Malformed(Reason.BAD_NAME, "key: not UTF-8") from exc
