"""Whatever the bytes are, a decoder answers with a value or a WireError with a reason.

Arbitrary bytes, valid ones cut short, with bits turned, and spliced together. A value that does come
out must be one that can be written again: nothing half-checked gets in. Not covered: particular
faults and their reasons (tests/unit/wire).
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Message, Report, RoundRecord, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.records import PolicyRecord
from rgd.core.stock.messages import StockReport
from rgd.core.units import Kind, Pair
from rgd.wire import codec
from rgd.wire.errors import Reason, WireError
from rgd.wire.frame import (
    Entry,
    decode_entry,
    encode_entry,
    headers_and_payload,
    peek_broker_entry_metadata,
)
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.policies import decode_policy, encode_policy
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from tests.support import wire_values
from tests.support.records import decoded as decoded_record
from tests.support.records import encoded as encoded_record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: What was meant to be flipped: a place in the bytes, as a part of their length, and a bit.
flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=4)


def turned(data: bytes, at: list[tuple[float, int]]) -> bytes:
    turned_data = bytearray(data)
    for part, bit in at:
        if turned_data:
            turned_data[int(part * len(turned_data))] ^= 1 << bit
    return bytes(turned_data)


def read(decode: Callable[[bytes], object], data: bytes) -> object:
    """The value, or None where the bytes were refused with a reason."""
    try:
        return decode(data)
    except WireError as error:
        refused = error
    assert refused.reason in Reason
    assert str(refused)
    return None


EVIL = Sender("evil", 1)
HONEST = Report(Sender("honest", 1), 1, 1_000_000_000)
SOME = UsageColumns.of(
    UsageRow("gold", Kind.PUBLISH, 1, Pair(5), Pair(5)),
    UsageRow("silver", Kind.DISPATCH, 1, Pair(7), Pair(9)),
)


DECODERS: list[Callable[[bytes], object]] = [
    codec.decode,
    decoded_record,
    decode_stock_report,
    decode_entry,
    peek_broker_entry_metadata,
    headers_and_payload,
    lambda data: decode_policy("group:gold", data),
    lambda data: decode_policy("limit:broker", data),
    lambda data: decode_policy("backlog:namespace:acme/orders", data),
]


@pytest.mark.parametrize("decode", DECODERS)
@given(
    data=st.binary(max_size=300)
    | st.binary(max_size=60).map(b"\x01\x00".__add__)
    | st.binary(max_size=60).map(b"\x01\x01".__add__)
    | st.binary(max_size=60).map(b"\x0e\x02\x00\x00\x00\x04".__add__)
    | st.binary(max_size=60).map(b"\x00\x00\x00\x08".__add__)
)
def test_arbitrary_bytes_are_a_value_or_a_refusal(
    decode: Callable[[bytes], object], data: bytes
) -> None:
    read(decode, data)


@given(message=wire_values.messages, at=flips, keep=st.floats(0, 1))
def test_a_changed_message_is_refused_or_still_sound(
    message: Message, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(codec.encode(message), at)
    value = read(codec.decode, data[: round(keep * len(data))])
    if isinstance(value, Message):
        assert codec.decode(codec.encode(value)) == value


def framed(body: bytes, *, states_size: bool = True) -> bytes:
    """A message with this body as one zstd frame."""
    compressor = zstd.ZstdCompressor()
    if states_size:
        compressor.set_pledged_input_size(len(body))
    return b"\x01\x01" + compressor.compress(body) + compressor.flush()


@given(message=wire_values.messages, at=flips, outside=flips, states_size=st.booleans())
def test_a_changed_body_in_a_frame_is_refused_or_still_sound(
    message: Message,
    at: list[tuple[float, int]],
    outside: list[tuple[float, int]],
    states_size: bool,
) -> None:
    plain = codec.encode(message)
    body = zstd.decompress(plain[2:]) if plain[1] else plain[2:]
    data = turned(framed(turned(body, at), states_size=states_size), outside)
    value = read(codec.decode, data)
    if isinstance(value, Message):
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.slow
@given(
    frames=st.lists(
        st.tuples(wire_values.reports, st.booleans(), flips, st.booleans()), min_size=1, max_size=6
    )
)
def test_changed_reports_with_numbers_are_refused_or_sound_and_spoil_nobody_elses(
    frames: list[tuple[Report, bool, list[tuple[float, int]], bool]],
) -> None:
    numbering, name_decoders = NameEncoder(), NameDecoders()
    other, honest = NameEncoder(), replace(HONEST, rows=SOME)
    codec.decode(codec.encode(honest, other), name_decoders)
    for report, is_mine, at, is_in_frame in frames:
        said = replace(report, sender=EVIL) if is_mine else report
        plain = codec.encode(said, numbering)
        body = turned(zstd.decompress(plain[2:]) if plain[1] else plain[2:], at)
        data = framed(body) if is_in_frame else plain[:1] + b"\x00" + body
        value = read(lambda data: codec.decode(data, name_decoders), data)
        if isinstance(value, Report):
            keys = list(zip(value.rows.groups, value.rows.kinds.tolist(), strict=True))
            assert len(set(keys)) == len(keys)
            assert codec.decode(codec.encode(value)) == wire_values.in_order(value)
    if all(report.sender.broker != HONEST.sender.broker for report, *_ in frames):
        assert codec.decode(codec.encode(honest, other), name_decoders) == honest


@pytest.mark.slow
@given(value=wire_values.round_records, at=flips, keep=st.floats(0, 1))
def test_a_changed_record_is_refused_or_still_sound(
    value: RoundRecord, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(encoded_record(value), at)
    decoded = read(decoded_record, data[: round(keep * len(data))])
    if isinstance(decoded, RoundRecord):
        assert decoded_record(encoded_record(decoded)) == decoded


@given(report=wire_values.stock_reports, at=flips, keep=st.floats(0, 1))
def test_a_changed_stock_report_is_refused_or_still_sound(
    report: StockReport, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(encode_stock_report(report), at)
    data = data[: round(keep * len(data))]
    decoded = read(decode_stock_report, data)
    if isinstance(decoded, StockReport):
        assert decode_stock_report(encode_stock_report(decoded)) == decoded


@given(value=wire_values.policy_records(), at=flips, keep=st.floats(0, 1))
def test_a_changed_policy_is_refused_or_still_sound(
    value: PolicyRecord, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(encode_policy(value), at)
    decoded = read(lambda text: decode_policy(value.key, text), data[: round(keep * len(data))])
    if isinstance(decoded, PolicyRecord):
        assert decode_policy(value.key, encode_policy(decoded)) == decoded


@given(key=st.text(max_size=40) | st.text(max_size=20).map("topic:".__add__))
def test_any_key_of_a_policy_is_known_or_refused(key: str) -> None:
    read(
        lambda data: decode_policy(key, data),
        b'{"version":1,"revision":1,"writer":"b","value":null}',
    )


@given(entry=wire_values.entries, at=flips.filter(bool))
def test_no_change_behind_the_checksum_goes_unseen(
    entry: Entry, at: list[tuple[float, int]]
) -> None:
    entry = Entry(entry.producer_name, entry.sequence_id, 1, entry.payload)
    data = encode_entry(entry)
    protected = data[6:]
    changed = turned(protected, at)
    if changed != protected:
        assert read(decode_entry, data[:6] + changed) is None
