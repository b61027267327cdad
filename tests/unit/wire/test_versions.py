"""Two versions of the wire side by side; the older one is what a release before shards wrote, recorded.

`wire_version_1.json` also has that release's schema: what we send to such a member is read with it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Ask, Claim, Goodbye, Hello, Message, Report, Sender
from rgd.core.exchange.shards import SHARDS_MAX, VERSION, WHOLE, Shard
from rgd.wire import usage_pb2
from rgd.wire.codec import NEWER_VERSION, OLDER_VERSION, decode, encode
from rgd.wire.compression import decompressed
from rgd.wire.errors import Reason, UnknownVersion, WireError
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from tests.unit.core.values import usage

_RECORDED = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "wire_version_1.json").read_text()
)
OLD = Sender("broker-old", 0x1122334455667788)
ME = Sender("broker-new", 7)


@pytest.fixture
def recorded() -> Mapping[str, Message]:
    """The messages of a daemon that speaks version 1 alone, as they are read here."""
    names = NameDecoders()
    return {
        what: decode(bytes.fromhex(data), names) for what, data in _RECORDED["messages"].items()
    }


def _read_by_old(data: bytes) -> Any:
    """A message as the recorded schema reads it, which has none of the later fields."""
    assert data[0] == 1, "it drops any other version"
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto.FromString(bytes.fromhex(_RECORDED["usage_proto"]))
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("rgd.v1.Message"))
    return kind.FromString(decompressed(data[2:], 1 << 20) if data[1] else data[2:])


def test_an_older_members_messages_are_read(recorded: Mapping[str, Message]) -> None:
    full, changed = recorded["full"], recorded["changed"]
    assert isinstance(full, Report)
    assert isinstance(changed, Report)
    assert recorded["hello"] == Hello(OLD, version=0)
    assert recorded["goodbye"] == Goodbye(OLD)
    assert recorded["ask"] == Ask(OLD, "broker-new")
    assert recorded["ask_any"] == Ask(OLD, "broker-new", full=False)
    assert (full.full, full.claim, full.weight, full.members) == (True, Claim.STARTING, 2000, 3)
    assert full.shard is WHOLE
    assert (full.version, full.shards) == (0, 1)
    rows = {(row.group, row.kind): row for row in full.rows}
    rows |= {(row.group, row.kind): row for row in changed.rows}
    read = [
        [row.group, row.kind.value, row.topics, *row.admitted, *row.wanted] for row in rows.values()
    ]
    assert read == _RECORDED["rows_after"]


def test_an_older_member_reads_what_is_sent_on_the_exchanges_topic() -> None:
    rows = UsageColumns.of(usage(5, group="acme"))
    sequences = ((5,) * 16,)
    report = Report(ME, 9, 10**9, rows, full=True, rows_hash=77, version=VERSION, shards=16)
    heartbeat = Report(ME, 10, 10**9, rows_hash=77, shards=16, shard_sequences=sequences)
    read = _read_by_old(encode(report, NameEncoder())).report
    assert (read.sequence, read.full, read.rows_hash) == (9, True, 77)
    assert list(read.names.groups) == ["acme"]
    assert len(read.rows.kinds) == 1
    assert _read_by_old(encode(heartbeat)).report.sequence == 10
    assert _read_by_old(encode(Hello(ME, VERSION, 16))).WhichOneof("what") == "hello"
    ask = _read_by_old(encode(Ask(ME, "broker-old")))
    assert (ask.ask.broker, ask.broker) == ("broker-old", "broker-new")


def test_a_report_of_a_shard_is_of_the_newer_version() -> None:
    report = Report(ME, 1, 10**9, UsageColumns.of(usage(5, group="acme")), shard=Shard(3, 16))
    data = encode(report)
    assert data[0] == NEWER_VERSION
    assert decode(data) == report
    with pytest.raises(WireError) as caught:
        decode(bytes((OLDER_VERSION,)) + data[1:])
    assert caught.value.reason == Reason.BAD_STRUCTURE


def test_fields_that_are_not_known_are_ignored() -> None:
    heartbeat = Report(ME, 4, 10**9, rows_hash=5)
    later = b"\xa2\x06\x03new"  # field 100, bytes
    inner = usage_pb2.Message.FromString(encode(heartbeat)[2:]).report.SerializeToString() + later
    body = bytes(
        usage_pb2.Message(broker=ME.broker, incarnation=ME.incarnation).SerializeToString()
    )
    body += b"\x1a" + bytes((len(inner),)) + inner + later
    assert decode(bytes((OLDER_VERSION, 0)) + body) == heartbeat


@pytest.mark.parametrize("version", [0, 3, 255])
def test_a_version_that_is_not_known_is_refused(version: int) -> None:
    with pytest.raises(UnknownVersion):
        decode(bytes((version, 0)) + encode(Hello(ME))[2:])


def test_one_shard_costs_a_heartbeat_no_byte() -> None:
    recorded = len(bytes.fromhex(_RECORDED["messages"]["heartbeat"]))
    heartbeat = Report(OLD, 3, 10**9, rows_hash=1 << 62, weight=2000, policies_hash=42, members=3)
    assert len(encode(heartbeat)) == recorded


@pytest.mark.parametrize(
    "shard", [Shard(0, 1 + SHARDS_MAX), Shard(16, 16), Shard(1, 1), Shard(1, 0)]
)
def test_a_shard_that_cannot_be_is_not_sent(shard: Shard) -> None:
    with pytest.raises(WireError):
        encode(Report(ME, 1, 10**9, shard=shard))


def test_the_names_of_each_shard_have_numbers_of_their_own() -> None:
    encoders = {shard: NameEncoder() for shard in (Shard(0, 2), Shard(1, 2))}
    decoders = NameDecoders()
    for shard, group in ((Shard(0, 2), "acme"), (Shard(1, 2), "zenith")):
        report = Report(ME, 1, 10**9, UsageColumns.of(usage(5, group=group)), shard=shard)
        read = decode(encode(report, encoders[shard]), decoders)
        assert isinstance(read, Report)
        assert [row.group for row in read.rows] == [group]
    again = Report(ME, 2, 10**9, UsageColumns.of(usage(5, group="acme")), shard=Shard(0, 2))
    read = decode(encode(again, encoders[Shard(0, 2)]), decoders)
    assert isinstance(read, Report)
    assert [row.group for row in read.rows] == ["acme"]
