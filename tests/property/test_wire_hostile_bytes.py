"""Whatever the bytes are, a decoder answers with a value or a WireError with a reason.

Arbitrary bytes, valid ones cut short, with bits turned, and spliced together. A value that does come
out must be one that can be written again: nothing half-checked gets in. Not covered: particular
faults and their reasons (tests/unit/wire).
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.messages import Message, RoundRecord
from rgd.core.policies.records import PolicyRecord
from rgd.wire import codec, record
from rgd.wire.errors import Reason, WireError
from rgd.wire.frame import (
    Entry,
    decode_entry,
    encode_entry,
    headers_and_payload,
    peek_broker_entry_metadata,
)
from rgd.wire.policies import decode_policy, encode_policy
from rgd.wire.pulsar_usage import StockReport, decode_stock_report, encode_stock_report
from tests.support import wire_values

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


DECODERS: list[Callable[[bytes], object]] = [
    codec.decode,
    record.decode_record,
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


@given(value=wire_values.round_records, at=flips, keep=st.floats(0, 1))
def test_a_changed_record_is_refused_or_still_sound(
    value: RoundRecord, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(record.encode_record(value), at)
    decoded = read(record.decode_record, data[: round(keep * len(data))])
    if isinstance(decoded, RoundRecord):
        assert record.decode_record(record.encode_record(decoded)) == decoded


@given(report=wire_values.stock_reports, at=flips, keep=st.floats(0, 1))
def test_a_changed_stock_report_is_refused_or_still_sound(
    report: StockReport, at: list[tuple[float, int]], keep: float
) -> None:
    data = turned(encode_stock_report(report), at)
    decoded = read(decode_stock_report, data[: round(keep * len(data))])
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
