"""Messages that a reader cannot use: it reads on, and tells what can be told.

Sent frame by frame, since no client sends them: encrypted, said to be compressed and are not, parts of
chunks that never become whole, batches of nonsense, keys that are no text. Not covered: a batch that declares many
messages that it does not have, which no client sends (docs/security.md). The exchange in memory is not in it, it has no metadata. Those whose sizes lie ended the process inside pulsar-client 3.13 (the reason of
docs/decisions/0042-rgd-reads-pulsar-itself.md). What each of them is read as is in tests/property/test_pulsar_delivery.py.
"""

import asyncio
import contextlib
import struct
from collections import Counter
from collections.abc import Callable

import pytest

from rgd.adapters.exchange.pulsar_reader import RECEIVER_QUEUE_MAX, Delivery, PulsarReader
from rgd.ports.exchange import ExchangeDown
from tests.contract.exchange.backends import (
    TIMEOUT_S,
    MakeExchange,
    MakeStore,
    PulsarBackend,
    learn,
)
from tests.support.exchanges import hears_itself
from tests.support.raw_pulsar import RawProducer, encrypted, message, metadata

pytestmark = pytest.mark.slow

#: More than the client's receiver queue takes.
MANY = RECEIVER_QUEUE_MAX + 200
#: Of the kinds that the client has always gone past.
SOME = 20
#: Messages of a batch.
BATCH = 10

Hostile = Callable[[int], tuple[bytes, bytes]]


def _in_batch(about: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(about)) + about + payload


#: One message of a batch.
_SINGLE = _in_batch(message((3, 3)), b"one")

HOSTILE: dict[str, Hostile] = {
    "encrypted": lambda n: (encrypted(n), b"nobody can read this"),
    "encrypted batch": lambda n: (encrypted(n) + message((11, 10)), b"nobody can read this"),
    **{
        f"bad {name}": lambda n, number=number: (  # type: ignore[misc]
            metadata(n, (8, number), (9, 100)),
            b"not compressed at all",
        )
        for number, name in ((2, "zlib"), (3, "zstd"), (4, "snappy"))
    },
    "unknown compression": lambda n: (metadata(n, (8, 77), (9, 100)), b"?"),
    "a large size": lambda n: (metadata(n, (8, 3), (9, 64 << 20)), b"?"),
    "part of a chunk": lambda n: (
        metadata(n, (26, b"%d" % n), (27, 2), (28, 1 << 20), (29, 0)),
        b"first",
    ),
    "last part of no chunk": lambda n: (
        metadata(n, (26, b"%d" % n), (27, 2), (28, 10), (29, 1)),
        b"second",
    ),
    "batch of too few": lambda n: (metadata(n, (11, 5)), _SINGLE),
    "batch with 300 KB of metadata": lambda n: (metadata(n, (11, 5), (5, bytes(300_000))), _SINGLE),
    "batch with a payload of gigabytes": lambda n: (
        metadata(n, (11, 1)),
        _in_batch(message((3, (1 << 31) - 1)), b""),
    ),
    "batch with a payload of less than nothing": lambda n: (
        metadata(n, (11, 2)),
        _in_batch(message((3, -5)), b"") * 2,
    ),
    "batch with metadata of gigabytes": lambda n: (metadata(n, (11, 1)), b"\x7f\xff\xff\xff"),
    "LZ4 that is none": lambda n: (metadata(n, (8, 1), (9, 4 << 20)), b"\xff" * 400),
    "LZ4 that becomes gigabytes": lambda n: (metadata(n, (8, 1), (9, (1 << 32) - 1)), b"\0"),
    "batch of nonsense": lambda n: (metadata(n, (11, 2)), b"\xff" * 40),
    "key that is no text": lambda n: (metadata(n, (6, b"\xff\xfe")), b"?"),
    "schema nobody knows": lambda n: (metadata(n, (16, b"\x00\x00\x00\x09")), b"?"),
}


async def _send(backend: PulsarBackend, topic: str, hostile: Hostile, count: int) -> None:
    port = int(backend.url.rpartition(":")[2])
    async with asyncio.timeout(TIMEOUT_S), RawProducer(port, topic) as raw:
        await raw.send(hostile(number) for number in range(count))
        assert raw.taken == count


async def test_while_batches_are_published_each_is_read_once_and_in_order(
    broker_backend: PulsarBackend,
) -> None:
    """The embedded broker sends entries of such a topic several times."""
    port = int(broker_backend.url.rpartition(":")[2])
    reader = PulsarReader(
        broker_backend.url,
        broker_backend.policies,
        broker_backend.settings,
        Counter(),
        from_start=True,
    )
    read: list[tuple[int, int, int]] = []
    with contextlib.closing(reader):
        # A broker takes a producer once it serves the topic, and looking it up makes it do so.
        await asyncio.to_thread(reader.open)
        async with asyncio.timeout(TIMEOUT_S), RawProducer(port, broker_backend.policies) as raw:
            sending = asyncio.create_task(
                raw.send((metadata(n, (11, BATCH)), _SINGLE * BATCH) for n in range(MANY))
            )
            while len(read) < BATCH * MANY:
                read += [one.position for one in await asyncio.to_thread(_read, reader)]
            await sending
    assert read == sorted(set(read))
    assert len(read) == BATCH * MANY


def _read(reader: PulsarReader) -> list[Delivery]:
    return list(reader.read(0.05))


async def test_a_thousand_encrypted_messages_do_not_stop_an_exchange(
    broker_backend: PulsarBackend, exchange: MakeExchange
) -> None:
    member = exchange()
    await member.open()
    await _send(broker_backend, broker_backend.usage, HOSTILE["encrypted"], MANY)
    await hears_itself(member)


async def test_a_thousand_encrypted_records_do_not_stop_a_table(
    broker_backend: PulsarBackend, store: MakeStore
) -> None:
    early, late = store(), store()
    await early.open()
    await early.put("before", b"1")
    await _send(broker_backend, broker_backend.policies, HOSTILE["encrypted"], MANY)
    await early.put("after", b"2")
    assert await learn(early, 2) == [("before", b"1"), ("after", b"2")]
    async with asyncio.timeout(TIMEOUT_S):
        assert dict(await late.open()) == {"before": b"1", "after": b"2"}


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind != "encrypted"])
async def test_reading_continues_after(
    kind: str, broker_backend: PulsarBackend, exchange: MakeExchange, store: MakeStore
) -> None:
    member, table = exchange(), store()
    await member.open()
    await table.open()
    for topic in (broker_backend.usage, broker_backend.policies):
        await _send(broker_backend, topic, HOSTILE[kind], SOME)
    await hears_itself(member)
    await table.put("key", b"value")
    learnt: list[tuple[str, bytes]] = []
    async with asyncio.timeout(TIMEOUT_S):
        while ("key", b"value") not in learnt:
            try:
                learnt += await table.changes()
            except ExchangeDown:
                # The client answers nobody while it looks for the room that a message claims to need:
                # the table counts as lost, and is opened again, as the daemon does.
                learnt += await table.open()
