"""The encoding of messages between rgd daemons: the `compact` dialect (proto/rgd/v1/usage.proto).

    [version u8][flags u8][body]        flag 0x01: the body is one zstd frame

Fields that are not known are ignored, so fields may be added without a new version. A message of another version is refused.

Law: `decode(encode(message))` has the content of `message`, row by row. For any other bytes `decode` returns
a message that the core can use or raises a `WireError`, whose `reason` labels a metric. It never
decodes more than `MESSAGE_MAX` bytes, nor more than a fixed multiple of the received bytes
(`rgd.wire.compression`), and the amount is known before it begins.

Rows are columns (`rgd.wire.columns`), and a body is compressed if that makes it smaller. With a dictionary,
`encode` and `decode` use numbers in place of names (`rgd.wire.name_dictionary`). A state that is
too large for one message is divided before (`rgd.core.exchange.report_parts`).
`rgd.wire.pulsar_usage` has the messages of stock Pulsar brokers.
"""

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from rgd.core.exchange.columns import NO_USAGE, Codes, UsageColumns
from rgd.core.exchange.messages import (
    ALL_ROWS,
    Ask,
    Claim,
    Goodbye,
    Hello,
    Message,
    Report,
    Sender,
    Span,
)
from rgd.core.exchange.shards import WHOLE
from rgd.wire import usage_pb2
from rgd.wire.checks import check_broker, check_count, check_weight
from rgd.wire.columns import read_amounts, write_amounts
from rgd.wire.compression import compressed, decompressed
from rgd.wire.errors import Malformed, Reason, TornFrame, UnknownVersion
from rgd.wire.keys import is_in_order, read_keys, write_keys
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.parts import check_size, parsed
from rgd.wire.shards import (
    checked_shard,
    read_count,
    read_sequences,
    write_sequences,
    written_count,
)

#: The version of a message's head.
VERSION: Final = 1
#: Largest message in bytes, as sent and as decompressed: the limit of an exchange
#: (`rgd.ports.exchange.PAYLOAD_BYTES_MAX`). Senders divide their reports so that none is larger.
MESSAGE_MAX: Final = 1024 * 1024

_Keys = tuple[Sequence[str], Codes]

_FLAG_ZSTD: Final = 1
_HEAD_SIZE: Final = 2
#: A column of fewer bytes is compressed together with the one before it.
_COLUMN_BYTES_MIN: Final = 512


def encode(message: Message, name_encoder: NameEncoder | None = None) -> bytes:
    """Encode a message; with the sender's dictionary, if it has one.

    Raises:
        Oversize: too many rows, or more than `MESSAGE_MAX` bytes.
        Malformed: a row occurs twice, or a name or number is invalid.
    """
    try:
        proto = _proto_of(message, name_encoder)
        body = proto.SerializeToString()
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, str(exc)) from exc
    check_size("message", len(body) + _HEAD_SIZE, MESSAGE_MAX)
    frame = compressed(body, columns=_columns_in(body, proto.report.rows))
    if frame is not None:
        return bytes((VERSION, _FLAG_ZSTD)) + frame
    return bytes((VERSION, 0)) + body


def _columns_in(body: bytes, rows: usage_pb2.UsageColumns) -> list[int]:
    """Where the larger columns begin, in the order of `body`."""
    begins, end = [], 0
    for field, column in rows.ListFields():
        if isinstance(column, bytes) and len(column) >= _COLUMN_BYTES_MIN:
            begin = body.index(column, end)
            end = begin + len(column)
            # High bytes of messages, and then of bytes.
            has_two = field.name.endswith("_high")
            begins += [begin, begin + len(column) // 2] if has_two else [begin]
    return begins


def decode(data: bytes, name_decoders: NameDecoders | None = None) -> Message:
    """Read a message; where it has numbers, with the names that were received before.

    A report with a number whose name was not received comes out without rows.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    check_size("message", len(data), MESSAGE_MAX)
    if len(data) < _HEAD_SIZE:
        raise TornFrame("message", _HEAD_SIZE, len(data))
    version, flags, body = data[0], data[1], data[_HEAD_SIZE:]
    if version != VERSION:
        raise UnknownVersion("message", version)
    if flags not in {0, _FLAG_ZSTD}:
        raise Malformed(Reason.BAD_STRUCTURE, f"message: flags {flags:#04x} are not known")
    if flags == _FLAG_ZSTD:
        body = decompressed(body, MESSAGE_MAX)
    proto = parsed(usage_pb2.Message, body, "message")
    return _message_of(proto, name_decoders or NameDecoders())


def _proto_of(message: Message, name_encoder: NameEncoder | None) -> usage_pb2.Message:
    sender = message.sender
    proto = usage_pb2.Message(broker=check_broker(sender.broker), incarnation=sender.incarnation)
    match message:
        case Report():
            _write_report(message, proto.report, name_encoder)
        case Hello():
            proto.hello.SetInParent()
            proto.hello.shards = written_count(message.shards)
        case Goodbye():
            proto.goodbye.SetInParent()
        case Ask():
            proto.ask.broker = check_broker(message.broker)
            proto.ask.any_word = not message.full
            if message.shard != WHOLE:
                proto.ask.shard, proto.ask.shard_count = checked_shard(*message.shard)
        case _:
            assert_never(message)
    return proto


def _write_report(
    report: Report, proto: usage_pb2.Report, name_encoder: NameEncoder | None
) -> None:
    proto.sequence = check_count(report.sequence, "sequence")
    proto.period_ns = check_count(report.period_ns, "period")
    proto.full = report.full
    proto.more = report.more
    if report.full and report.span != ALL_ROWS:
        proto.span_begin, span_end = _checked_span(report.span)
        proto.span_end = span_end % ALL_ROWS.end
    proto.rows_hash = report.rows_hash
    proto.weight = check_weight(report.weight)
    proto.policies_hash = report.policies_hash
    proto.members = check_count(report.members, "members")
    proto.claim = report.claim
    proto.rival = report.rival
    proto.shards = written_count(report.shards)
    if report.shard != WHOLE:
        proto.shard, proto.shard_count = checked_shard(*report.shard)
    write_sequences(report.shard_sequences, proto)
    rows = report.rows
    if not len(rows):
        return
    if name_encoder is not None:
        rows = name_encoder.write(rows, proto, report.span if report.full else None)
    else:
        rows = rows if is_in_order(rows) else rows.in_order()
        write_keys(rows, proto.rows)
    write_amounts(rows, proto.rows)


def _message_of(proto: usage_pb2.Message, name_decoders: NameDecoders) -> Message:
    what = proto.WhichOneof("what")
    if what is None:
        raise Malformed(Reason.MISSING, "message: has nothing that this version knows")
    sender = Sender(check_broker(proto.broker), proto.incarnation)
    if what == "report":
        return _read_report(sender, proto.report, name_decoders)
    return _READERS[what](sender, proto)


def _read_report(sender: Sender, report: usage_pb2.Report, name_decoders: NameDecoders) -> Report:
    period_ns = check_count(report.period_ns, "period")
    shard = checked_shard(report.shard, report.shard_count)
    rows = _read_rows(sender, report, name_decoders)
    return Report(
        sender=sender,
        sequence=check_count(report.sequence, "sequence"),
        period_ns=period_ns,
        rows=NO_USAGE if rows is None else rows,
        # Rows that cannot be read are not taken back by it.
        full=report.full and rows is not None,
        rows_hash=report.rows_hash,
        weight=check_weight(report.weight),
        policies_hash=report.policies_hash,
        members=max(1, check_count(report.members, "members")),
        span=_read_span(report) if report.full and rows is not None else ALL_ROWS,
        more=report.more,
        claim=_read_claim(report.claim),
        rival=report.rival,
        shard=shard,
        shards=read_count(report.shards),
        shard_sequences=read_sequences(report.layouts),
    )


def _read_span(report: usage_pb2.Report) -> Span:
    return _checked_span(Span(report.span_begin, report.span_end or ALL_ROWS.end))


def _checked_span(span: Span) -> Span:
    if not 0 <= span.begin < span.end <= ALL_ROWS.end:
        raise Malformed(Reason.BAD_NUMBER, "span: expected its end behind its beginning")
    return span


def _read_claim(number: int) -> Claim:
    try:
        return Claim(number)
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, f"claim: {exc}") from exc


def _read_rows(
    sender: Sender, report: usage_pb2.Report, name_decoders: NameDecoders
) -> UsageColumns | None:
    """The rows; None where a name was missed."""
    if not report.HasField("names"):
        keys: _Keys | None = read_keys(report.rows)
    elif report.rows.groups:
        raise Malformed(Reason.BAD_STRUCTURE, "rows: both names and numbers")
    else:
        keys = name_decoders.read(sender, report)
    if keys is None:
        return None
    groups, kinds = keys
    return read_amounts(report.rows, groups, kinds)


_READERS: Final[dict[str, Callable[[Sender, usage_pb2.Message], Message]]] = {
    "hello": lambda sender, proto: Hello(sender, read_count(proto.hello.shards)),
    "goodbye": lambda sender, _: Goodbye(sender),
    "ask": lambda sender, proto: Ask(
        sender,
        check_broker(proto.ask.broker),
        full=not proto.ask.any_word,
        shard=checked_shard(proto.ask.shard, proto.ask.shard_count),
    ),
}
