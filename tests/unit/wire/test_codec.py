"""Messages between rgd daemons: size, compression, and each fault with its reason.

Not covered: whole ranges of values and arbitrary bytes (tests/property/test_wire_*.py), the exchange.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report, Sender, Span
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire import codec, keys
from rgd.wire.errors import (
    Malformed,
    Oversize,
    Reason,
    TornFrame,
    UnknownVersion,
    WireError,
)
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.usage_pb2 import Message as MessageProto
from rgd.wire.usage_pb2 import UsageColumns as ColumnsProto
from tests.support.wire_values import varints

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SPEAKER = Sender("broker-1", 0xFEEDFACE)
U64_MAX = (1 << 64) - 1


def row(group: str, kind: Kind = Kind.PUBLISH, **changes: object) -> UsageRow:
    usage = UsageRow(group, kind, 3, Pair(10_000, 5_000), Pair(12_000, 6_000))
    return replace(usage, **changes)  # type: ignore[arg-type]  # each test names real fields


def many(count: int) -> tuple[UsageRow, ...]:
    return tuple(row(f"group-{number:06}") for number in range(count))


def report_of(*rows: UsageRow) -> Report:
    columns_of = UsageColumns.of(*rows)
    return Report(SPEAKER, 17, 1_000_000_000, columns_of, full=True, rows_hash=U64_MAX)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Hello(SPEAKER), id="hello"),
        pytest.param(Goodbye(SPEAKER), id="goodbye"),
        pytest.param(Ask(SPEAKER, "broker-2"), id="ask"),
        pytest.param(Report(SPEAKER, 1, 1), id="heartbeat"),
        pytest.param(report_of(row("gold"), row("gold", Kind.DISPATCH)), id="report"),
    ],
)
def test_each_message_comes_back(message: Message) -> None:
    assert codec.decode(codec.encode(message)) == codec.in_order(message)


def test_a_heartbeat_is_under_100_bytes() -> None:
    sender = Sender("ip-10-0-12-34.eu-west-1.compute.internal", U64_MAX)
    beat = Report(sender, 10**9, 10**9, rows_hash=U64_MAX, policies_hash=U64_MAX)
    assert len(codec.encode(beat)) < 100


def test_small_messages_stay_plain_and_large_ones_are_compressed() -> None:
    small, large = codec.encode(Hello(SPEAKER)), codec.encode(report_of(*many(100)))
    assert small[:2] == bytes((codec.VERSION, 0))
    assert large[:2] == bytes((codec.VERSION, 1))
    assert len(large) < len(zstd.decompress(large[2:]))


def message(proto: MessageProto) -> bytes:
    return bytes((codec.VERSION, 0)) + proto.SerializeToString()


def reported(**fields: object) -> bytes:
    proto = MessageProto(broker="b", incarnation=1)
    proto.report.sequence = proto.report.weight = 1
    for name, value in fields.items():
        setattr(proto.report, name, value)
    return message(proto)


def with_rows(rows: ColumnsProto) -> bytes:
    proto = MessageProto(broker="b", incarnation=1)
    proto.report.weight = 1
    proto.report.rows.CopyFrom(rows)
    return message(proto)


def test_the_fields_of_a_later_version_are_skipped() -> None:
    assert codec.decode(reported() + b"\xf8\x07\x01") == Report(Sender("b", 1), 1, 0, weight=1)


def bomb() -> bytes:
    return bytes((codec.VERSION, 1)) + zstd.compress(bytes(codec.MESSAGE_MAX + 1))


def framed(body: bytes, *, states_size: bool = True) -> bytes:
    """A message whose body is one zstd frame."""
    compressor = zstd.ZstdCompressor()
    if states_size:
        compressor.set_pledged_input_size(len(body))
    return bytes((codec.VERSION, 1)) + compressor.compress(body) + compressor.flush()


HOSTILE = [
    pytest.param(b"", TornFrame, Reason.TORN, id="empty"),
    pytest.param(b"\x01", TornFrame, Reason.TORN, id="one-byte"),
    pytest.param(b"\x03\x00", UnknownVersion, Reason.UNKNOWN_VERSION, id="later-version"),
    pytest.param(b"\x01\x02", Malformed, Reason.BAD_STRUCTURE, id="unknown-flag"),
    pytest.param(b"\x01\x00\xff", Malformed, Reason.UNPARSABLE, id="no-protobuf"),
    pytest.param(b"\x01\x01abc", Malformed, Reason.UNPARSABLE, id="no-zstd"),
    pytest.param(
        codec.encode(report_of(*many(50)))[:-9], TornFrame, Reason.TORN, id="zstd-cut-short"
    ),
    pytest.param(
        codec.encode(report_of(*many(50))) + b"x",
        Malformed,
        Reason.BAD_STRUCTURE,
        id="zstd-and-more",
    ),
    pytest.param(bomb(), Oversize, Reason.OVERSIZE, id="zstd-bomb"),
    pytest.param(framed(bytes(100_000)), Oversize, Reason.OVERSIZE, id="zstd-ratio"),
    pytest.param(
        framed(bytes(range(256)) * 4, states_size=False),
        Malformed,
        Reason.MISSING,
        id="zstd-no-size",
    ),
    pytest.param(framed(b""), Malformed, Reason.MISSING, id="zstd-nothing"),
    pytest.param(
        b"\x01\x01" + bytes.fromhex("502a4d1804000000") + b"abcd",
        Malformed,
        Reason.MISSING,
        id="zstd-skippable",
    ),
    pytest.param(bytes(codec.MESSAGE_MAX + 1), Oversize, Reason.OVERSIZE, id="large"),
    pytest.param(message(MessageProto(broker="b")), Malformed, Reason.MISSING, id="says-nothing"),
    pytest.param(
        b"\x01\x00" + b"\x0a\x01\xff\x22\x00", Malformed, Reason.UNPARSABLE, id="not-utf8"
    ),
    pytest.param(b"\x01\x00\x22\x00", Malformed, Reason.BAD_NAME, id="no-broker"),
    pytest.param(
        b"\x01\x00\x0a\x01\x07\x22\x00", Malformed, Reason.BAD_NAME, id="broker-unprintable"
    ),
    pytest.param(b"\x01\x00\x0a\x01b\x32\x00", Malformed, Reason.BAD_NAME, id="asks-nobody"),
    pytest.param(reported(weight=0), Malformed, Reason.BAD_NUMBER, id="weight-0"),
    pytest.param(reported(weight=U64_MAX), Malformed, Reason.BAD_NUMBER, id="weight-large"),
    pytest.param(reported(sequence=U64_MAX), Malformed, Reason.BAD_NUMBER, id="sequence-large"),
    pytest.param(reported(period_ns=U64_MAX), Malformed, Reason.BAD_NUMBER, id="period-large"),
]


def columns_proto(groups: list[str], kinds: list[int], **numbers: list[int]) -> ColumnsProto:
    packed = {name: varints(*column) for name, column in numbers.items()}
    return ColumnsProto(groups=groups, kinds=varints(*kinds), **packed)


ROWS = [
    pytest.param(columns_proto(["a"], []), Reason.BAD_COLUMNS, id="no-kinds"),
    pytest.param(columns_proto(["a"], [1, 1]), Reason.BAD_COLUMNS, id="kinds-long"),
    pytest.param(columns_proto([], [], topics=[1]), Reason.BAD_COLUMNS, id="a-column-without-rows"),
    pytest.param(columns_proto(["a"], [3], topics=[1]), Reason.BAD_COLUMNS, id="topics-short"),
    pytest.param(
        ColumnsProto(groups=["a"], kinds=b"\x01", topics=b"\x80"),
        Reason.BAD_COLUMNS,
        id="number-cut-short",
    ),
    pytest.param(
        ColumnsProto(groups=["a"], kinds=b"\x01", topics=bytes(1 << 19)),
        Reason.BAD_COLUMNS,
        id="more-bytes-than-rows-can-have",
    ),
    pytest.param(
        columns_proto(["a"], [1], topics=[1 << 64]), Reason.BAD_NUMBER, id="number-of-65-bits"
    ),
    pytest.param(
        ColumnsProto(groups=["a", "b"], kinds=b"\x01\x01", topics=b"\x80" * 11 + b"\0\0"),
        Reason.BAD_NUMBER,
        id="number-of-12-bytes",
    ),
    pytest.param(columns_proto(["a"], [0]), Reason.BAD_NUMBER, id="kinds-none"),
    pytest.param(columns_proto(["a"], [4]), Reason.BAD_NUMBER, id="kinds-unknown"),
    pytest.param(columns_proto(["a", "a"], [1, 2]), Reason.DUPLICATE, id="group-twice"),
    pytest.param(columns_proto(["b", "a"], [1, 1]), Reason.BAD_STRUCTURE, id="unsorted"),
    pytest.param(columns_proto([""], [1]), Reason.BAD_NAME, id="group-empty"),
    pytest.param(columns_proto(["b", ""], [1, 1]), Reason.BAD_NAME, id="later-group-empty"),
    pytest.param(columns_proto(["a", "b\nc"], [1, 1]), Reason.BAD_NAME, id="group-of-two-lines"),
    pytest.param(columns_proto(["a b"], [1]), Reason.BAD_NAME, id="group-spaced"),
    pytest.param(
        columns_proto(["\N{LATIN SMALL LETTER E WITH ACUTE}"], [1]),
        Reason.BAD_NAME,
        id="group-accented",
    ),
    pytest.param(columns_proto(["a" * 513], [1]), Reason.BAD_NAME, id="group-long"),
    pytest.param(columns_proto(["a"] * 70_000, [1] * 70_000), Reason.OVERSIZE, id="groups-many"),
    pytest.param(
        columns_proto([f"{number:05}" for number in range(40_000)], [3] * 40_000),
        Reason.OVERSIZE,
        id="rows-many",
    ),
]


@pytest.mark.parametrize(("data", "error", "reason"), HOSTILE)
def test_what_is_no_message_is_refused_with_its_reason(
    data: bytes, error: type[WireError], reason: Reason
) -> None:
    with pytest.raises(error) as caught:
        codec.decode(data)
    assert caught.value.reason is reason


@pytest.mark.parametrize(("rows", "reason"), ROWS)
def test_columns_that_do_not_fit_are_refused_with_their_reason(
    rows: ColumnsProto, reason: Reason
) -> None:
    with pytest.raises(WireError) as caught:
        codec.decode(with_rows(rows))
    assert caught.value.reason is reason


ONE = UsageColumns.of(row("a"))

UNWRITABLE = [
    pytest.param(report_of(row("a"), row("a")), Reason.DUPLICATE, id="row-twice"),
    pytest.param(report_of(row("a/b")), Reason.BAD_NAME, id="group-name"),
    pytest.param(report_of(row("a", admitted=Pair(-1, 0))), Reason.BAD_NUMBER, id="rate-negative"),
    pytest.param(report_of(row("a", wanted=Pair(0, -1))), Reason.BAD_NUMBER, id="wanted-negative"),
    pytest.param(report_of(row("a", topics=-1)), Reason.BAD_NUMBER, id="topics-negative"),
    pytest.param(
        replace(report_of(row("a")), rows=replace(ONE, kinds=np.array([2], np.uint8))),
        Reason.BAD_NUMBER,
        id="kind-unknown",
    ),
    pytest.param(
        replace(report_of(row("a")), rows=replace(ONE, kinds=np.zeros(2, np.uint8))),
        Reason.BAD_COLUMNS,
        id="kinds-long",
    ),
    pytest.param(
        replace(report_of(row("a")), rows=replace(ONE, wanted=np.zeros((2, 2), np.int64))),
        Reason.BAD_COLUMNS,
        id="wanted-long",
    ),
    pytest.param(Report(SPEAKER, -1, 1), Reason.BAD_NUMBER, id="sequence-negative"),
    pytest.param(Report(SPEAKER, 1, 1, weight=0), Reason.BAD_NUMBER, id="weight-0"),
    pytest.param(Report(SPEAKER, 1, 1, rows_hash=-1), Reason.BAD_NUMBER, id="hash-negative"),
    pytest.param(Hello(Sender("b", 1 << 64)), Reason.BAD_NUMBER, id="incarnation-large"),
    pytest.param(Hello(Sender("", 1)), Reason.BAD_NAME, id="broker-empty"),
    pytest.param(Hello(Sender("\ud800", 1)), Reason.BAD_NAME, id="broker-no-unicode"),
    pytest.param(Ask(SPEAKER, "a\nb"), Reason.BAD_NAME, id="asked-unprintable"),
    pytest.param(report_of(*many(keys.ROWS_MAX + 1)), Reason.OVERSIZE, id="rows-many"),
    pytest.param(
        report_of(*(row(f"{number:0512}") for number in range(9_000))), Reason.OVERSIZE, id="large"
    ),
]


@pytest.mark.parametrize(("value", "reason"), UNWRITABLE)
def test_what_the_other_side_would_refuse_is_not_sent(value: Message, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        codec.encode(value)
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    "rows",
    [(row("b"), row("a")), (row("a", Kind.DISPATCH), row("a"))],
)
def test_rows_out_of_order_are_not_written(rows: tuple[UsageRow, ...]) -> None:
    with pytest.raises(Malformed) as caught:
        keys.write_keys(UsageColumns.of(*rows), ColumnsProto())
    assert caught.value.reason is Reason.BAD_STRUCTURE


def test_nothing_that_is_too_large_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDecompressor:
        def __init__(self, **_options: object) -> None:
            raise AssertionError("it was decompressed")

    monkeypatch.setattr("rgd.wire.compression.zstd.ZstdDecompressor", NoDecompressor)
    for data in (bomb(), framed(bytes(100_000)), framed(bytes(1000), states_size=False)):
        with pytest.raises(WireError):
            codec.decode(data)


@pytest.mark.parametrize("said", [500, 999, 1001, 9000])
def test_a_frame_that_lies_about_its_size_is_refused(said: int) -> None:
    data = bytearray(framed(bytes(range(200)) * 5))
    # RFC 8878: magic, descriptor (this one says: one segment, two bytes of size), size less 256.
    assert data[6] >> 5 == 0b011
    assert int.from_bytes(data[7:9], "little") + 256 == 1000
    data[7:9] = (said - 256).to_bytes(2, "little")
    with pytest.raises(WireError):
        codec.decode(bytes(data))


def test_what_compresses_too_well_is_sent_as_it_is_and_read() -> None:
    same = [row(f"g{number:05}") for number in range(2_000)]
    message = report_of(*same)
    numbering, name_decoders = NameEncoder(), NameDecoders()
    codec.decode(codec.encode(message, numbering), name_decoders)
    again = codec.encode(message, numbering)
    assert codec.decode(again, name_decoders) == message


def test_a_span_ends_behind_its_beginning() -> None:
    message = replace(report_of(row("gold")), full=True, span=Span(5, 5))
    with pytest.raises(WireError) as caught:
        codec.encode(message)
    assert caught.value.reason is Reason.BAD_NUMBER
