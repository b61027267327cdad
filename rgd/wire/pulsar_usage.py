"""The usage messages of stock Pulsar brokers (proto/pulsar/resource_usage.proto, PIP-82 as shipped).

Law: a message of a stock 4.0.8 is read and written back byte for byte. Unknown fields are
skipped, as Pulsar skips ours. Counts are totals of the stock period, which no message states; the core
converts them to rates (`rgd.core.stock`, which also has the values).

A stock broker tells all its groups in one message, which may be larger than any of rgd's (`REPORT_MAX`).
rgd divides its own: receivers take each group by itself, so several messages say what one would.

A group without publish and without dispatch means: unchanged since the last report. Names are checked
less strictly than rgd's own, because Pulsar accepts more. Repetitions are kept
unchanged. rgd's own fields under high numbers are not part of this version.
"""

from typing import Final

from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import Pair
from rgd.wire import resource_usage_pb2
from rgd.wire.checks import check_broker, check_count, check_counts, check_foreign_group, check_utf8
from rgd.wire.codec import MESSAGE_MAX
from rgd.wire.errors import Malformed, Reason
from rgd.wire.keys import ROWS_MAX
from rgd.wire.parts import check_size, parsed, runs

#: Largest report that is read: Pulsar's default limit of a message.
REPORT_MAX: Final = 5 << 20
#: A message to send has groups of at most about this many bytes.
SEND_BYTES_MAX: Final = 512 << 10
#: Bytes of a group's entry beside its name, at most, and of a character of the name.
_ENTRY_BYTES_MAX: Final = 90
_CHARACTER_BYTES_MAX: Final = 4


def encode_stock_report(report: StockReport) -> bytes:
    """Write a report as a stock broker does.

    Raises:
        Oversize: too many groups or bytes.
        Malformed: a name or number cannot be one.
    """
    check_size("groups", len(report.usage), ROWS_MAX)
    data = resource_usage_pb2.ResourceUsageInfo(
        broker=check_broker(report.broker), usageMap=map(_proto_of, report.usage)
    ).SerializeToString()
    check_size("stock report", len(data), MESSAGE_MAX)
    return data


def encode_stock_reports(report: StockReport, bytes_max: int = SEND_BYTES_MAX) -> tuple[bytes, ...]:
    """Write a report as messages of at most so many bytes, each with some of its groups.

    Raises:
        Oversize, Malformed: as `encode_stock_report`.
    """
    names = [_ENTRY_BYTES_MAX + _CHARACTER_BYTES_MAX * len(each.group) for each in report.usage]
    parts = runs(names, bytes_max) or [(0, 0)]
    return tuple(
        encode_stock_report(StockReport(report.broker, report.usage[begin:end]))
        for begin, end in parts
    )


def decode_stock_report(data: bytes) -> StockReport:
    """Read a stock broker's report (after the client has undone LZ4).

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    check_size("stock report", len(data), REPORT_MAX)
    proto = parsed(resource_usage_pb2.ResourceUsageInfo, data, "stock report")
    if not proto.IsInitialized():
        raise Malformed(Reason.MISSING, "stock report: a required field is missing")
    check_size("groups", len(proto.usageMap), ROWS_MAX)
    broker = check_broker(check_utf8(proto.broker, "broker"))
    return StockReport(broker, tuple(map(_usage_of, proto.usageMap)))


def _proto_of(usage: GroupUsage) -> resource_usage_pb2.ResourceUsage:
    storage = None
    if usage.storage_bytes is not None:
        check_count(usage.storage_bytes, "storage")
        storage = resource_usage_pb2.StorageUsage(totalBytes=usage.storage_bytes)
    return resource_usage_pb2.ResourceUsage(
        owner=check_foreign_group(usage.group),
        publish=_network_of(usage.publish),
        dispatch=_network_of(usage.dispatch),
        storage=storage,
    )


def _network_of(pair: Pair | None) -> resource_usage_pb2.NetworkUsage | None:
    if pair is None:
        return None
    check_counts(pair, "usage")
    return resource_usage_pb2.NetworkUsage(
        bytesPerPeriod=pair.bytes, messagesPerPeriod=pair.messages
    )


def _usage_of(proto: resource_usage_pb2.ResourceUsage) -> GroupUsage:
    storage = proto.storage.totalBytes if proto.HasField("storage") else None
    return GroupUsage(
        group=check_foreign_group(check_utf8(proto.owner, "group")),
        publish=_pair_of(proto.publish) if proto.HasField("publish") else None,
        dispatch=_pair_of(proto.dispatch) if proto.HasField("dispatch") else None,
        storage_bytes=None if storage is None else check_count(storage, "storage"),
    )


def _pair_of(proto: resource_usage_pb2.NetworkUsage) -> Pair:
    pair = Pair(messages=proto.messagesPerPeriod, bytes=proto.bytesPerPeriod)
    check_counts(pair, "usage")
    return pair
