"""Messages in and out: what cannot be sent or read is counted, and senders that are gone are forgotten.

Not covered: large states and bombs (tests/integration/exchange/test_large_states.py).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from rgd.app.traffic import OUTBOX_MAX, SENDS_MAX, Traffic
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Hello, Message, Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.ports.exchange import ExchangeDown
from rgd.wire.codec import decode, encode
from rgd.wire.dialect import CompactDialect
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from tests.support.errors import no_end
from tests.support.memory_bus import MemoryBus, MemoryExchange

#: For what is over in a moment.
TIMEOUT_S = 30


def row(group: str) -> UsageRow:
    return UsageRow(group, Kind.PUBLISH, 1, Pair(5), Pair(5))


def report(broker: str, *groups: str) -> Report:
    return Report(Sender(broker, 1), 1, 1, UsageColumns.of(*map(row, groups)))


async def test_names_of_senders_that_are_gone_are_forgotten_before_the_next_message() -> None:
    dialect = CompactDialect()
    traffic = Traffic(MemoryExchange(MemoryBus()), dialect, no_end())
    first, second = NameEncoder(), NameEncoder()
    for broker, numbering in (("b1", first), ("b2", second)):
        assert traffic.decoded(encode(report(broker, "gold"), numbering))
    traffic.keep_names({"b2", "me"})
    again = traffic.decoded(encode(report("b2", "gold"), second))
    gone = traffic.decoded(encode(report("b1", "gold"), first))
    assert isinstance(again, Report)
    assert isinstance(gone, Report)
    assert (len(again.rows), len(gone.rows)) == (1, 0)


async def test_what_cannot_be_encoded_is_counted_and_the_rest_is_sent() -> None:
    exchange = MemoryExchange(MemoryBus())
    await exchange.open()
    traffic = Traffic(exchange, CompactDialect(), no_end())
    traffic.reached()
    for message in (report("b1", "no name"), Hello(Sender("b1", 1))):
        traffic.post(message)
    task = asyncio.create_task(traffic.send())
    await traffic.flush(TIMEOUT_S)
    task.cancel()
    assert len(await exchange.receive()) == 1
    assert traffic.dropped == {"unsent": 1}
    await exchange.close()


async def test_what_a_full_queue_drops_is_counted() -> None:
    traffic = Traffic(MemoryExchange(MemoryBus()), CompactDialect(), no_end())
    for _ in range(OUTBOX_MAX + 3):
        traffic.post(Hello(Sender("b1", 1)))
    assert traffic.dropped == {"outbox": 3}


class Slow(MemoryExchange):
    """An exchange that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__(MemoryBus())
        self.waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self.began = asyncio.Condition()

    async def publish(self, payload: bytes) -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        async with self.began:
            self.waiting.append((payload, answer))
            self.began.notify_all()
        await answer

    async def until_waiting(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.began:
            await self.began.wait_for(lambda: len(self.waiting) == count)

    def answer(self, error: Exception | None = None) -> None:
        for _, answer in self.waiting:
            answer.set_exception(error) if error else answer.set_result(None)
        self.waiting = []


@contextlib.asynccontextmanager
async def sending(exchange: Slow) -> AsyncIterator[Traffic[Message]]:
    traffic: Traffic[Message] = Traffic(exchange, CompactDialect(), no_end())
    traffic.reached()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(traffic.send())
        yield traffic
        task.cancel()


def sequences(exchange: Slow) -> list[int]:
    """Of the reports that wait for an answer, in the order in which they were published."""
    names = NameDecoders()
    messages = [decode(payload, names) for payload, _ in exchange.waiting]
    return [message.sequence for message in messages if isinstance(message, Report)]


async def test_messages_are_sent_in_order_without_waiting_for_answers() -> None:
    exchange = Slow()
    async with sending(exchange) as traffic:
        for sequence in range(1, SENDS_MAX + 10):
            traffic.post(Report(Sender("b1", 1), sequence, 1, UsageColumns.of()))
        await exchange.until_waiting(SENDS_MAX)
        assert sequences(exchange) == list(range(1, SENDS_MAX + 1))
        # One that is lost takes no other with it.
        exchange.answer(ExchangeDown("no answer"))
        await exchange.until_waiting(9)
        assert sequences(exchange) == list(range(SENDS_MAX + 1, SENDS_MAX + 10))
        flushing = asyncio.create_task(traffic.flush(TIMEOUT_S))
        await asyncio.sleep(0)
        assert not flushing.done()
        exchange.answer()
        await flushing
        assert traffic.dropped == {"unsent": SENDS_MAX}
