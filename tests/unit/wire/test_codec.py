"""Messages between rgd daemons: size, compression, and each fault with its reason.

Not covered: whole ranges of values and arbitrary bytes (tests/property/test_wire_*.py), the exchange.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Ask, Hello, Message, Report, Sender, Span
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire import codec, keys
from rgd.wire.errors import Reason, WireError
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.usage_pb2 import Message as MessageProto
from rgd.wire.usage_pb2 import UsageColumns as ColumnsProto
from tests.support.cases import cases, refused
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


def bomb() -> bytes:
    return bytes((codec.VERSION, 1)) + zstd.compress(bytes(codec.MESSAGE_MAX + 1))


def framed(body: bytes, *, states_size: bool = True) -> bytes:
    """A message whose body is one zstd frame."""
    compressor = zstd.ZstdCompressor()
    if states_size:
        compressor.set_pledged_input_size(len(body))
    return bytes((codec.VERSION, 1)) + compressor.compress(body) + compressor.flush()


HOSTILE = {
    "empty": (b"", Reason.TORN),
    "one-byte": (b"\x01", Reason.TORN),
    "later-version": (b"\x03\x00", Reason.UNKNOWN_VERSION),
    "unknown-flag": (b"\x01\x02", Reason.BAD_STRUCTURE),
    "no-protobuf": (b"\x01\x00\xff", Reason.UNPARSABLE),
    "no-zstd": (b"\x01\x01abc", Reason.UNPARSABLE),
    "zstd-cut-short": (codec.encode(report_of(*many(50)))[:-9], Reason.TORN),
    "zstd-and-more": (codec.encode(report_of(*many(50))) + b"x", Reason.BAD_STRUCTURE),
    "zstd-bomb": (bomb(), Reason.OVERSIZE),
    "zstd-ratio": (framed(bytes(100_000)), Reason.OVERSIZE),
    "zstd-no-size": (framed(bytes(range(256)) * 4, states_size=False), Reason.MISSING),
    "zstd-nothing": (framed(b""), Reason.MISSING),
    "zstd-skippable": (b"\x01\x01" + bytes.fromhex("502a4d1804000000") + b"abcd", Reason.MISSING),
    "large": (bytes(codec.MESSAGE_MAX + 1), Reason.OVERSIZE),
    "says-nothing": (message(MessageProto(broker="b")), Reason.MISSING),
    "not-utf8": (b"\x01\x00" + b"\x0a\x01\xff\x22\x00", Reason.UNPARSABLE),
    "no-broker": (b"\x01\x00\x22\x00", Reason.BAD_NAME),
    "broker-unprintable": (b"\x01\x00\x0a\x01\x07\x22\x00", Reason.BAD_NAME),
    "asks-nobody": (b"\x01\x00\x0a\x01b\x32\x00", Reason.BAD_NAME),
    "weight-0": (reported(weight=0), Reason.BAD_NUMBER),
    "weight-large": (reported(weight=U64_MAX), Reason.BAD_NUMBER),
    "sequence-large": (reported(sequence=U64_MAX), Reason.BAD_NUMBER),
    "period-large": (reported(period_ns=U64_MAX), Reason.BAD_NUMBER),
}


def columns_proto(groups: list[str], kinds: list[int], **numbers: list[int]) -> ColumnsProto:
    packed = {name: varints(*column) for name, column in numbers.items()}
    return ColumnsProto(groups=groups, kinds=varints(*kinds), **packed)


ROWS = {
    "no-kinds": (columns_proto(["a"], []), Reason.BAD_COLUMNS),
    "kinds-long": (columns_proto(["a"], [1, 1]), Reason.BAD_COLUMNS),
    "a-column-without-rows": (columns_proto([], [], topics=[1]), Reason.BAD_COLUMNS),
    "topics-short": (columns_proto(["a"], [3], topics=[1]), Reason.BAD_COLUMNS),
    "number-cut-short": (
        ColumnsProto(groups=["a"], kinds=b"\x01", topics=b"\x80"),
        Reason.BAD_COLUMNS,
    ),
    "more-bytes-than-rows-can-have": (
        ColumnsProto(groups=["a"], kinds=b"\x01", topics=bytes(1 << 19)),
        Reason.BAD_COLUMNS,
    ),
    "number-of-65-bits": (columns_proto(["a"], [1], topics=[1 << 64]), Reason.BAD_NUMBER),
    "number-of-12-bytes": (
        ColumnsProto(groups=["a", "b"], kinds=b"\x01\x01", topics=b"\x80" * 11 + b"\0\0"),
        Reason.BAD_NUMBER,
    ),
    "kinds-none": (columns_proto(["a"], [0]), Reason.BAD_NUMBER),
    "kinds-unknown": (columns_proto(["a"], [4]), Reason.BAD_NUMBER),
    "group-twice": (columns_proto(["a", "a"], [1, 2]), Reason.DUPLICATE),
    "unsorted": (columns_proto(["b", "a"], [1, 1]), Reason.BAD_STRUCTURE),
    "group-empty": (columns_proto([""], [1]), Reason.BAD_NAME),
    "later-group-empty": (columns_proto(["b", ""], [1, 1]), Reason.BAD_NAME),
    "group-of-two-lines": (columns_proto(["a", "b\nc"], [1, 1]), Reason.BAD_NAME),
    "group-spaced": (columns_proto(["a b"], [1]), Reason.BAD_NAME),
    "group-accented": (
        columns_proto(["\N{LATIN SMALL LETTER E WITH ACUTE}"], [1]),
        Reason.BAD_NAME,
    ),
    "group-long": (columns_proto(["a" * 513], [1]), Reason.BAD_NAME),
    "groups-many": (columns_proto(["a"] * 70_000, [1] * 70_000), Reason.OVERSIZE),
    "rows-many": (
        columns_proto([f"{number:05}" for number in range(40_000)], [3] * 40_000),
        Reason.OVERSIZE,
    ),
}


@cases("data, reason", HOSTILE)
def test_what_is_no_message_is_refused_with_its_reason(data: bytes, reason: Reason) -> None:
    with refused(reason):
        codec.decode(data)


@cases("rows, reason", ROWS)
def test_columns_that_do_not_fit_are_refused_with_their_reason(
    rows: ColumnsProto, reason: Reason
) -> None:
    with refused(reason):
        codec.decode(with_rows(rows))


ONE = UsageColumns.of(row("a"))

UNWRITABLE = {
    "row-twice": (report_of(row("a"), row("a")), Reason.DUPLICATE),
    "group-name": (report_of(row("a/b")), Reason.BAD_NAME),
    "rate-negative": (report_of(row("a", admitted=Pair(-1, 0))), Reason.BAD_NUMBER),
    "wanted-negative": (report_of(row("a", wanted=Pair(0, -1))), Reason.BAD_NUMBER),
    "topics-negative": (report_of(row("a", topics=-1)), Reason.BAD_NUMBER),
    "kind-unknown": (
        replace(report_of(row("a")), rows=replace(ONE, kinds=np.array([2], np.uint8))),
        Reason.BAD_NUMBER,
    ),
    "kinds-long": (
        replace(report_of(row("a")), rows=replace(ONE, kinds=np.zeros(2, np.uint8))),
        Reason.BAD_COLUMNS,
    ),
    "wanted-long": (
        replace(report_of(row("a")), rows=replace(ONE, wanted=np.zeros((2, 2), np.int64))),
        Reason.BAD_COLUMNS,
    ),
    "sequence-negative": (Report(SPEAKER, -1, 1), Reason.BAD_NUMBER),
    "weight-0": (Report(SPEAKER, 1, 1, weight=0), Reason.BAD_NUMBER),
    "hash-negative": (Report(SPEAKER, 1, 1, rows_hash=-1), Reason.BAD_NUMBER),
    "incarnation-large": (Hello(Sender("b", 1 << 64)), Reason.BAD_NUMBER),
    "broker-empty": (Hello(Sender("", 1)), Reason.BAD_NAME),
    "broker-no-unicode": (Hello(Sender("\ud800", 1)), Reason.BAD_NAME),
    "asked-unprintable": (Ask(SPEAKER, "a\nb"), Reason.BAD_NAME),
    "rows-many": (report_of(*many(keys.ROWS_MAX + 1)), Reason.OVERSIZE),
    "large": (report_of(*(row(f"{number:0512}") for number in range(9_000))), Reason.OVERSIZE),
}


@cases("value, reason", UNWRITABLE)
def test_what_the_other_side_would_refuse_is_not_sent(value: Message, reason: Reason) -> None:
    with refused(reason):
        codec.encode(value)


@pytest.mark.parametrize("rows", [(row("b"), row("a")), (row("a", Kind.DISPATCH), row("a"))])
def test_rows_out_of_order_are_not_written(rows: tuple[UsageRow, ...]) -> None:
    with refused(Reason.BAD_STRUCTURE):
        keys.write_keys(UsageColumns.of(*rows), ColumnsProto())


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
    with refused(Reason.BAD_NUMBER):
        codec.encode(message)
