"""How every exchange behaves, from an empty topic on: in memory, embedded, on Apache Pulsar.

Not covered here: brokers that go away (test_faults.py), messages that a broker drops because a
member is too slow (the port allows it), and what the messages mean (the core).
"""

import asyncio
import time

import pytest

from rgd.ports.exchange import PAYLOAD_BYTES_MAX, ExchangeClosed, PayloadTooLarge
from tests.contract.exchange.backends import (
    STANDSTILL_MAX,
    TIMEOUT_S,
    Backend,
    MakeExchange,
    begun,
    hear,
    longest_standstill,
    open_all,
)
from tests.support.policy_tables import until

pytestmark = pytest.mark.usefixtures("backend")


async def test_every_member_receives_all_messages_and_its_own(exchange: MakeExchange) -> None:
    members = [exchange() for _ in range(3)]
    await open_all(members)
    said = {b"one", b"two", b"three"}
    await asyncio.gather(*(m.publish(word) for m, word in zip(members, said, strict=True)))
    for member in members:
        assert set(await hear(member, 3)) == said


async def test_each_publishers_messages_arrive_in_its_order(exchange: MakeExchange) -> None:
    members = [exchange() for _ in range(2)]
    await open_all(members)
    for number in range(50):
        for name, member in zip((b"a", b"b"), members, strict=True):
            await member.publish(b"%c%d" % (name, number))
    for member in members:
        heard = await hear(member, 100)
        for name in (b"a", b"b"):
            numbers = [int(word[1:]) for word in heard if word[:1] == name]
            assert numbers == list(range(50))


async def test_publishes_under_way_at_once_arrive_in_the_order_of_the_calls(
    exchange: MakeExchange,
) -> None:
    member = exchange()
    await member.open()
    said = [b"%d" % number for number in range(50)]
    # A larger one must not be overtaken. All are less than what Pulsar has under way for a reader of a
    # non-persistent topic before it drops messages.
    said[10] = bytes(1 << 15)
    await asyncio.gather(*map(member.publish, said))
    assert await hear(member, 50) == said


async def test_a_message_during_a_join_reaches_the_new_member(exchange: MakeExchange) -> None:
    # A broker drops what it cannot send at once, and a subscriber's permits come after it subscribed.
    sender = exchange()
    await sender.open()
    for _ in range(60):
        newcomer = exchange()
        await newcomer.open()
        await sender.publish(b"welcome")
        assert await hear(newcomer, 1) == [b"welcome"]
        await newcomer.close()


async def test_a_new_member_receives_only_messages_after_its_join(exchange: MakeExchange) -> None:
    early, late = exchange(), exchange()
    await early.open()
    await early.publish(b"before")
    assert await hear(early, 1) == [b"before"]
    await late.open()
    await early.publish(b"after")
    assert await hear(late, 1) == [b"after"]
    assert await hear(early, 1) == [b"after"]


@pytest.mark.parametrize("size_bytes", [0, 1, PAYLOAD_BYTES_MAX])
async def test_payloads_of_every_size_arrive_unchanged(
    exchange: MakeExchange, size_bytes: int
) -> None:
    sender, listener = exchange(), exchange()
    await open_all([sender, listener])
    payload = bytes(number % 251 for number in range(size_bytes))
    await sender.publish(payload)
    assert await hear(listener, 1) == [payload]
    assert await hear(sender, 1) == [payload]


async def test_a_payload_that_is_too_large_is_refused_and_harms_nothing(
    exchange: MakeExchange,
) -> None:
    member = exchange()
    await member.open()
    with pytest.raises(PayloadTooLarge, match=str(PAYLOAD_BYTES_MAX)):
        await member.publish(bytes(PAYLOAD_BYTES_MAX + 1))
    await member.publish(b"small")
    assert await hear(member, 1) == [b"small"]


async def test_the_publish_time_is_the_senders(exchange: MakeExchange) -> None:
    sender, listener = exchange(), exchange()
    await open_all([sender, listener])
    before_ms = time.time_ns() // 1_000_000
    await sender.publish(b"now")
    async with asyncio.timeout(TIMEOUT_S):
        (received,) = await listener.receive_dated()
    assert received.payload == b"now"
    assert before_ms <= received.published_ms <= time.time_ns() // 1_000_000


async def test_a_full_queue_drops_the_oldest_and_counts(exchange: MakeExchange) -> None:
    slow, sender = exchange(queue_max=10), exchange()
    await open_all([slow, sender])
    assert not slow.dropped.total()
    for number in range(25):
        await sender.publish(b"%d" % number)
    await until(lambda: slow.dropped.total() == 15)
    assert await hear(slow, 10) == [b"%d" % number for number in range(15, 25)]
    assert await hear(sender, 25) == [b"%d" % number for number in range(25)]
    assert not sender.dropped.total()


async def test_a_cancelled_receive_loses_nothing(exchange: MakeExchange) -> None:
    member = exchange()
    await member.open()
    waiting = await begun(member.receive())
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await member.publish(b"kept")
    assert await hear(member, 1) == [b"kept"]


async def test_closing_wakes_a_waiting_receive_is_idempotent_and_final(
    exchange: MakeExchange,
) -> None:
    member = exchange()
    await member.open()
    waiting = await begun(member.receive())
    await asyncio.gather(member.close(), member.close())
    with pytest.raises(ExchangeClosed):
        async with asyncio.timeout(TIMEOUT_S):
            await waiting
    for use in (member.publish(b"late"), member.receive(), member.open()):
        with pytest.raises(ExchangeClosed):
            await use


async def test_a_member_that_never_joined_cannot_publish_and_can_be_closed(
    exchange: MakeExchange,
) -> None:
    member = exchange()
    with pytest.raises(ExchangeClosed):
        await member.publish(b"early")
    with pytest.raises(ExchangeClosed):
        await member.receive()
    await member.close()


async def test_the_others_continue_when_one_leaves(exchange: MakeExchange) -> None:
    leaving, staying = exchange(), exchange()
    await open_all([leaving, staying])
    await leaving.publish(b"goodbye")
    await leaving.close()
    await staying.publish(b"still here")
    assert await hear(staying, 2) == [b"goodbye", b"still here"]


async def test_what_was_published_before_closing_is_not_lost(exchange: MakeExchange) -> None:
    leaving, staying = exchange(), exchange()
    await open_all([leaving, staying])
    for number in range(20):
        await leaving.publish(b"%d" % number)
    await leaving.close()
    assert await hear(staying, 20) == [b"%d" % number for number in range(20)]


async def test_joining_and_leaving_never_hold_up_the_event_loop(
    exchange: MakeExchange, backend: Backend
) -> None:
    async def come_and_go() -> None:
        for _ in range(3):
            member = exchange()
            await member.open()
            await member.publish(b"here")
            await member.close()

    work = asyncio.create_task(come_and_go())
    assert await longest_standstill(work) < STANDSTILL_MAX
    await work
