"""The head of a message, shards in it, and fields that a later release may add.

Not covered: any message there and back (tests/property/test_wire_round_trips.py).
"""

import pytest

from rgd.core.exchange.limits import SHARDS_MAX
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.shards import Shard
from rgd.wire import usage_pb2
from rgd.wire.codec import VERSION, decode, encode
from rgd.wire.errors import WireError

ME = Sender("broker-new", 7)


def test_fields_that_are_not_known_are_ignored() -> None:
    heartbeat = Report(ME, 4, 10**9, rows_hash=5)
    later = b"\xa2\x06\x03new"  # field 100, bytes
    inner = usage_pb2.Message.FromString(encode(heartbeat)[2:]).report.SerializeToString() + later
    body = bytes(
        usage_pb2.Message(broker=ME.broker, incarnation=ME.incarnation).SerializeToString()
    )
    body += b"\x1a" + bytes((len(inner),)) + inner + later
    assert decode(bytes((VERSION, 0)) + body) == heartbeat


@pytest.mark.parametrize(
    "shard", [Shard(0, 1 + SHARDS_MAX), Shard(16, 16), Shard(1, 1), Shard(1, 0)]
)
def test_a_shard_that_cannot_be_is_not_sent(shard: Shard) -> None:
    with pytest.raises(WireError):
        encode(Report(ME, 1, 10**9, shard=shard))
