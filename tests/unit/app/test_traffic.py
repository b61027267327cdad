"""Messages in and out: what cannot be sent or read is counted, and senders that are gone are forgotten.

Not covered: large states and bombs (tests/integration/exchange/test_large_states.py).
"""

import pytest

from rgd.adapters.exchange.memory import MemoryBus, MemoryExchange
from rgd.app import shard_topics
from rgd.app.traffic import OUTBOX_MAX, Traffic
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Hello, Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire.codec import encode
from rgd.wire.dialect import CompactDialect
from rgd.wire.name_dictionary import NameEncoder
from tests.support.errors import no_end


def row(group: str) -> UsageRow:
    return UsageRow(group, Kind.PUBLISH, 1, Pair(5), Pair(5))


def report(broker: str, *groups: str) -> Report:
    return Report(Sender(broker, 1), 1, 1, UsageColumns.of(*map(row, groups)))


async def test_names_of_senders_that_are_gone_are_forgotten_before_the_next_message() -> None:
    dialect = CompactDialect()
    traffic = Traffic(MemoryExchange(MemoryBus()), dialect, no_end())
    first, second = NameEncoder(), NameEncoder()
    for broker, numbering in (("b1", first), ("b2", second)):
        assert await traffic.decoded(encode(report(broker, "gold"), numbering))
    before = dialect.name_decoders.cost
    traffic.keep_names({"b2", "me"})
    # Nothing is touched while a message may be being decoded.
    assert dialect.name_decoders.cost == before
    again = await traffic.decoded(encode(report("b2", "gold"), second))
    assert isinstance(again, Report)
    assert len(again.rows) == 1
    assert dialect.name_decoders.cost == before // 2


async def test_what_cannot_be_encoded_is_counted_and_the_rest_is_sent() -> None:
    exchange = MemoryExchange(MemoryBus())
    await exchange.open()
    traffic = Traffic(exchange, CompactDialect(), no_end())
    for message in (report("b1", "no name"), Hello(Sender("b1", 1))):
        await traffic._send_one(message)
    assert len(await exchange.receive()) == 1
    assert traffic.dropped == {"unsent": 1}
    await exchange.close()


@pytest.mark.parametrize("size", [OUTBOX_MAX, shard_topics.OUTBOX_MAX])
async def test_what_a_full_queue_drops_is_counted(size: int) -> None:
    traffic = Traffic(MemoryExchange(MemoryBus()), CompactDialect(), no_end(), size)
    for _ in range(size + 3):
        traffic.post(Hello(Sender("b1", 1)))
    assert traffic.dropped == {"outbox": 3}


async def test_what_cannot_be_read_is_counted_by_its_reason() -> None:
    dialect = CompactDialect()
    traffic = Traffic(MemoryExchange(MemoryBus()), dialect, no_end())
    for payload in (b"", b"\x09\x00", b"\x01\x01abc", b"\x01\x00\xff", bytes(2 << 20)):
        assert await traffic.decoded(payload) is None
    assert traffic.dropped == {"torn": 1, "unknown_version": 1, "unparsable": 2, "oversize": 1}
