"""Stock brokers' reports: Pulsar's own bytes both ways, and each fault with its reason.

Not covered: whole ranges of values and arbitrary bytes (tests/property/test_wire_*.py), and a running
Pulsar.
"""

from typing import Any

import pytest

from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import COUNT_MAX, Pair
from rgd.wire.errors import Reason
from rgd.wire.keys import ROWS_MAX
from rgd.wire.pulsar_usage import (
    REPORT_MAX,
    SEND_BYTES_MAX,
    decode_stock_report,
    encode_stock_report,
    encode_stock_reports,
)
from tests.support import wire_values
from tests.support.cases import cases, refused

CAPTURES = wire_values.vectors("pulsar_usage_reports.json")["reports"]
BROKER = b"\x0a\x01b"


def pair_of(usage: dict[str, int] | None) -> Pair | None:
    return None if usage is None else Pair(usage["messages"], usage["bytes"])


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda c: c["hex"][-8:])
def test_what_pulsar_sent_reads_as_it_says_and_is_written_back(capture: dict[str, Any]) -> None:
    data = bytes.fromhex(capture["hex"])
    stated = capture["decoded"]
    expected = StockReport(
        stated["broker"],
        tuple(
            GroupUsage(
                usage["group"], pair_of(usage.get("publish")), pair_of(usage.get("dispatch"))
            )
            for usage in stated["usage"]
        ),
    )
    assert decode_stock_report(data) == expected
    assert encode_stock_report(expected) == data


def test_a_report_is_divided_into_messages_that_can_be_sent() -> None:
    assert encode_stock_reports(StockReport("b")) == (encode_stock_report(StockReport("b")),)
    many = tuple(GroupUsage(f"{at:0500}", Pair(at, at)) for at in range(600))
    messages = encode_stock_reports(StockReport("b", many))
    assert len(messages) > 1
    assert max(map(len, messages)) <= SEND_BYTES_MAX
    read = [decode_stock_report(message) for message in messages]
    assert {report.broker for report in read} == {"b"}
    assert tuple(usage for report in read for usage in report.usage) == many


def test_names_that_only_pulsar_allows_are_read() -> None:
    report = StockReport("b", (GroupUsage("grün & gold"),))
    assert decode_stock_report(encode_stock_report(report)) == report


@cases(
    "data, reason",
    {
        "no-protobuf": (b"\xff", Reason.UNPARSABLE),
        "no-broker": (b"", Reason.MISSING),
        "no-owner": (BROKER + b"\x12\x00", Reason.MISSING),
        "no-counts": (BROKER + b"\x12\x05\x0a\x01g\x12\x00", Reason.MISSING),
        "broker-empty": (b"\x0a\x00", Reason.BAD_NAME),
        "broker-not-utf8": (b"\x0a\x01\xff", Reason.BAD_NAME),
        "owner-not-utf8": (BROKER + b"\x12\x03\x0a\x01\xff", Reason.BAD_NAME),
        "owner-unprintable": (BROKER + b"\x12\x03\x0a\x01\x00", Reason.BAD_NAME),
        "bytes-large": (
            BROKER + b"\x12\x12\x0a\x01g\x12\x0d\x08" + b"\xff" * 9 + b"\x01\x10\x00",
            Reason.BAD_NUMBER,
        ),
        "storage-large": (
            BROKER + b"\x12\x10\x0a\x01g\x22\x0b\x08" + b"\xff" * 9 + b"\x01",
            Reason.BAD_NUMBER,
        ),
        "large": (bytes(REPORT_MAX + 1), Reason.OVERSIZE),
        "groups-many": (BROKER + b"\x12\x03\x0a\x01g" * (ROWS_MAX + 1), Reason.OVERSIZE),
        # A million groups without a name.
        "groups-empty": (BROKER + b"\x12\x00" * (1 << 20), Reason.MISSING),
        "torn": (BROKER + b"\x12\x03", Reason.UNPARSABLE),
    },
)
def test_what_is_no_report_is_refused_with_its_reason(data: bytes, reason: Reason) -> None:
    with refused(reason):
        decode_stock_report(data)


@cases(
    "report, reason",
    {
        "broker-empty": (StockReport(""), Reason.BAD_NAME),
        "group-empty": (StockReport("b", (GroupUsage(""),)), Reason.BAD_NAME),
        "negative": (StockReport("b", (GroupUsage("g", Pair(-1, 0)),)), Reason.BAD_NUMBER),
        "storage-large": (
            StockReport("b", (GroupUsage("g", storage_bytes=COUNT_MAX + 1),)),
            Reason.BAD_NUMBER,
        ),
        "groups-many": (StockReport("b", (GroupUsage("g"),) * (ROWS_MAX + 1)), Reason.OVERSIZE),
        "large": (StockReport("b", (GroupUsage("g" * 500),) * 9_000), Reason.OVERSIZE),
    },
)
def test_what_stock_brokers_could_not_use_is_not_written(
    report: StockReport, reason: Reason
) -> None:
    with refused(reason):
        encode_stock_report(report)
