"""What rgd daemons tell one another, in bytes: the `compact` dialect (proto/rgd/v1/usage.proto).

    [version u8][flags u8][body]        flag 0x01: the body is one zstd frame

Law: `decode(encode(message)) == in_order(message)`, and whatever anybody else sends, `decode` answers
with a message the core can use or raises a `WireError`, whose `reason` labels a metric. It never
takes more than `MESSAGE_MAX` bytes apart, however small they were when they came.

Rows are columns (`rgd.wire.columns`); a body is compressed where that makes it smaller. A larger
state than fits in one message is for several topics (shards) to carry, elsewhere. What stock Pulsar
brokers say is in `rgd.wire.pulsar_usage`.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final, assert_never

from google.protobuf.message import DecodeError

from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report, Speaker
from rgd.wire import usage_pb2
from rgd.wire.checks import check_broker, check_count, check_weight
from rgd.wire.columns import decode_rows, encode_rows, is_in_order
from rgd.wire.errors import Malformed, Oversize, Reason, TornFrame, UnknownVersion

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VERSION: Final = 1
#: Largest message in bytes, as it is sent and as it is when decompressed; Pulsar takes 5 MiB.
MESSAGE_MAX: Final = 4 * 1024 * 1024

_FLAG_ZSTD: Final = 1
_HEAD_SIZE: Final = 2
#: Below this many bytes a zstd frame only adds; heartbeats stay as they are.
_COMPRESS_MIN: Final = 128
#: About a column of PIP-82's case.
_ZSTD_BLOCK_BYTES: Final = 16 * 1024
#: A window of MESSAGE_MAX: no frame of ours needs more memory than that.
_ZSTD_WINDOW_LOG_MAX: Final = 22


def in_order(message: Message) -> Message:
    """The message with its rows in the order in which they travel."""
    if not isinstance(message, Report) or is_in_order(message.rows):
        return message
    return replace(message, rows=message.rows.in_order())


def encode(message: Message) -> bytes:
    """Write a message.

    Raises:
        Oversize: too many rows, or more than `MESSAGE_MAX` bytes.
        Malformed: a row comes twice, or a name or number cannot be one.
    """
    try:
        body = _proto_of(message).SerializeToString()
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, str(exc)) from exc
    if len(body) + _HEAD_SIZE > MESSAGE_MAX:
        raise Oversize("message", len(body) + _HEAD_SIZE, MESSAGE_MAX)
    if len(body) >= _COMPRESS_MIN:
        small = _compressed(body)
        if len(small) < len(body):
            return bytes((VERSION, _FLAG_ZSTD)) + small
    return bytes((VERSION, 0)) + body


def decode(data: bytes) -> Message:
    """Read a message.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    if len(data) > MESSAGE_MAX:
        raise Oversize("message", len(data), MESSAGE_MAX)
    if len(data) < _HEAD_SIZE:
        raise TornFrame("message", _HEAD_SIZE, len(data))
    version, flags = data[0], data[1]
    if version != VERSION:
        raise UnknownVersion("message", version)
    if flags not in {0, _FLAG_ZSTD}:
        raise Malformed(Reason.BAD_STRUCTURE, f"message: flags {flags:#04x} are not known")
    body = data[_HEAD_SIZE:]
    if flags == _FLAG_ZSTD:
        body = _decompressed(body)
    try:
        proto = usage_pb2.Message.FromString(body)
    except DecodeError as exc:
        raise Malformed(Reason.UNPARSABLE, f"message: {exc}") from exc
    return _message_of(proto)


def _compressed(body: bytes) -> bytes:
    """One zstd frame, block by block: numbers of one column have more in common than all have."""
    compressor = zstd.ZstdCompressor()
    blocks = [
        compressor.compress(body[start : start + _ZSTD_BLOCK_BYTES], mode=compressor.FLUSH_BLOCK)
        for start in range(0, len(body), _ZSTD_BLOCK_BYTES)
    ]
    return b"".join((*blocks, compressor.flush()))


def _decompressed(data: bytes) -> bytes:
    decompressor = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG_MAX}
    )
    try:
        body = decompressor.decompress(data, max_length=MESSAGE_MAX + 1)
    except zstd.ZstdError as exc:
        raise Malformed(Reason.UNPARSABLE, f"message: {exc}") from exc
    if len(body) > MESSAGE_MAX:
        raise Oversize("message, decompressed", len(body), MESSAGE_MAX)
    if not decompressor.eof:
        raise TornFrame("message, compressed", len(data) + 1, len(data))
    if decompressor.unused_data:
        raise Malformed(Reason.BAD_STRUCTURE, "message: bytes behind the zstd frame")
    return body


def _proto_of(message: Message) -> usage_pb2.Message:
    speaker = message.speaker
    proto = usage_pb2.Message(broker=check_broker(speaker.broker), incarnation=speaker.incarnation)
    match message:
        case Report():
            _write_report(message, proto.report)
        case Hello():
            proto.hello.SetInParent()
        case Goodbye():
            proto.goodbye.SetInParent()
        case Ask():
            proto.ask.broker = check_broker(message.broker)
            proto.ask.any_word = not message.full
        case _:
            assert_never(message)
    return proto


def _write_report(report: Report, proto: usage_pb2.Report) -> None:
    proto.sequence = check_count(report.sequence, "sequence")
    proto.period_ns = check_count(report.period_ns, "period")
    proto.full = report.full
    proto.rows_hash = report.rows_hash
    proto.weight = check_weight(report.weight)
    proto.policies_hash = report.policies_hash
    proto.members = check_count(report.members, "members")
    if len(report.rows):
        rows = report.rows if is_in_order(report.rows) else report.rows.in_order()
        encode_rows(rows, proto.rows, period_ns=report.period_ns)


def _message_of(proto: usage_pb2.Message) -> Message:
    what = proto.WhichOneof("what")
    if what is None:
        raise Malformed(Reason.MISSING, "message: says nothing that this version knows")
    return _READERS[what](Speaker(check_broker(proto.broker), proto.incarnation), proto)


def _read_report(speaker: Speaker, proto: usage_pb2.Message) -> Report:
    report = proto.report
    period_ns = check_count(report.period_ns, "period")
    return Report(
        speaker=speaker,
        sequence=check_count(report.sequence, "sequence"),
        period_ns=period_ns,
        rows=decode_rows(report.rows, period_ns=period_ns),
        full=report.full,
        rows_hash=report.rows_hash,
        weight=check_weight(report.weight),
        policies_hash=report.policies_hash,
        members=max(1, check_count(report.members, "members")),
    )


_READERS: Final[dict[str, Callable[[Speaker, usage_pb2.Message], Message]]] = {
    "report": _read_report,
    "hello": lambda speaker, _: Hello(speaker),
    "goodbye": lambda speaker, _: Goodbye(speaker),
    "ask": lambda speaker, proto: Ask(
        speaker, check_broker(proto.ask.broker), full=not proto.ask.any_word
    ),
}
