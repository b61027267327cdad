"""Every codec gives back what it was given, over the whole range of its values.

Not covered: what encoders refuse (tests/unit/wire), hostile bytes (test_wire_hostile_bytes.py), and
files of entries (test_wire_segment.py).
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.exchange.columns import NO_USAGE
from rgd.core.exchange.messages import Message, Report, RoundRecord, Sender
from rgd.core.policies.records import PolicyRecord
from rgd.core.stock.messages import StockReport
from rgd.core.units import Kind, Pair
from rgd.wire import codec, record
from rgd.wire.dialect import CompactDialect, PulsarDialect
from rgd.wire.frame import (
    Entry,
    decode_entry,
    encode_entry,
    headers_and_payload,
    peek_broker_entry_metadata,
)
from rgd.wire.policies import decode_policy, encode_policy
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report, encode_stock_reports
from tests.support import wire_values
from tests.support.records import decoded, encoded

ONE = Sender("b1", 7)


def content(message: Message) -> tuple[Message, dict[tuple[str, Kind], tuple[int, Pair, Pair]]]:
    """What daemons use of a message: totals are for logs, and rows have no order."""
    if not isinstance(message, Report):
        return message, {}
    rows = {(r.group, r.kind): (r.topics, r.admitted, r.wanted) for r in message.rows}
    return replace(message, rows=NO_USAGE), rows


@given(wire_values.messages)
def test_a_message_comes_back_with_its_rows_in_order(message: Message) -> None:
    assert codec.decode(codec.encode(message)) == wire_values.in_order(message)


@given(wire_values.messages)
def test_one_message_has_one_encoding(message: Message) -> None:
    assert codec.encode(codec.decode(codec.encode(message))) == codec.encode(message)


@pytest.mark.slow
@given(wire_values.round_records)
def test_a_record_comes_back_with_its_rows_in_order(value: RoundRecord) -> None:
    assert decoded(encoded(value)) == record.in_order(value)


@settings(max_examples=30)
@given(wire_values.round_records)
def test_a_record_for_people_is_plain_json(value: RoundRecord) -> None:
    plain = record.record_to_dict(value)
    assert json.loads(json.dumps(plain)) == plain


@given(wire_values.stock_reports)
def test_a_stock_report_comes_back(report: StockReport) -> None:
    assert decode_stock_report(encode_stock_report(report)) == report


@given(st.lists(wire_values.messages, max_size=4))
def test_messages_survive_the_compact_dialect(messages: list[Message]) -> None:
    sender, receiver = CompactDialect(), CompactDialect()
    for message in [replace(message, sender=ONE) for message in messages]:
        (payload,) = sender.encode(message)
        assert content(receiver.decode(payload)) == content(message)


@given(wire_values.stock_reports)
def test_reports_survive_the_pulsar_dialect_divided_or_not(report: StockReport) -> None:
    dialect = PulsarDialect()
    whole = [dialect.decode(payload) for payload in dialect.encode(report)]
    divided = [dialect.decode(payload) for payload in encode_stock_reports(report, bytes_max=300)]
    for read in (whole, divided):
        assert {part.broker for part in read} == {report.broker}
        assert tuple(usage for part in read for usage in part.usage) == report.usage


@given(wire_values.policy_records())
def test_a_policy_comes_back_exactly(value: PolicyRecord) -> None:
    assert decode_policy(value.key, encode_policy(value)) == value


@settings(max_examples=30)
@given(wire_values.policy_records())
def test_a_policy_is_json_that_any_reader_takes(value: PolicyRecord) -> None:
    body = json.loads(encode_policy(value))
    assert (body["version"], body["revision"], body["writer"]) == (1, value.revision, value.writer)


@given(wire_values.entries)
def test_an_entry_comes_back_and_re_encodes_to_the_same_bytes(entry: Entry) -> None:
    data = encode_entry(entry)
    assert decode_entry(data) == entry
    assert encode_entry(decode_entry(data)) == data


@given(wire_values.entries)
def test_peeking_agrees_with_reading_whole(entry: Entry) -> None:
    data = encode_entry(entry)
    assert peek_broker_entry_metadata(data) == entry.broker
    behind = headers_and_payload(data)
    assert data.endswith(behind)
    assert decode_entry(behind).payload == entry.payload
    assert decode_entry(behind).broker is None
