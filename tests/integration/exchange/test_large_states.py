"""States of 200,000 rows with long names, and bombs, over the embedded broker.

The daemon's own traffic (encoding, decoding, threads) and usage maps on each end of a real exchange; the
sender's reports are cut by the core's functions. Not covered: when a broker sends its state
(tests/simulation), loss (tests/property/test_report_parts.py), what the laws of the exchange are
(tests/contract/exchange).
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.app.traffic import Traffic
from rgd.core.broker.events import Started
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Hello, Message, Report, Sender
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.report_parts import parts_of_rows, parts_of_state
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import NS_PER_S
from rgd.ports.exchange import Exchange, Received
from rgd.wire import codec
from rgd.wire.compression import decompressed
from rgd.wire.dialect import CompactDialect
from tests.contract.exchange.backends import PATIENT
from tests.support.errors import no_end
from tests.support.exchanges import embedded_exchange
from tests.support.memory_bus import MemoryBus
from tests.support.policy_tables import table
from tests.support.whole_daemon import RgdDaemon, daemon_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.embedded

GROUPS: Final = 100_000
TIMEOUT_S: Final = 110
ME: Final = Sender("sender", 1)


@asynccontextmanager
async def exchanges(folder: Path) -> AsyncIterator[list[PulsarExchange]]:
    """Two members of one exchange, open."""
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(embedded_exchange(folder))
        members = [PulsarExchange(broker.url, settings=PATIENT) for _ in range(2)]
        for member in members:
            stack.push_async_callback(member.close)
            await member.open()
        yield members


def large_state() -> UsageColumns:
    """A hundred thousand groups with names of 80 letters, in both kinds."""
    dice = np.random.default_rng(10)
    amounts = rounded(dice.integers(1, 1 << 40, (2 * GROUPS, 2)))
    return UsageColumns(
        groups=tuple(f"{group:080}" for group in range(GROUPS) for _ in range(2)),
        kinds=np.tile(np.array([0, 1], np.uint8), GROUPS),
        topics=np.ones(2 * GROUPS, np.int64),
        admitted=amounts,
        wanted=amounts,
    )


def reports_of(rows: UsageColumns, rows_hash: int) -> list[Message]:
    """What a broker sends of it: a round in which all of it changed, and then its whole state."""
    index = GroupIndex()
    slots = index.slots(rows.groups, rows.kinds)
    reports: list[Message] = []
    for part in parts_of_rows(rows):
        reports.append(Report(ME, len(reports) + 1, NS_PER_S, part, rows_hash=rows_hash, more=True))
    for some, span in parts_of_state(index, slots):
        reports.append(
            Report(
                ME,
                len(reports) + 1,
                NS_PER_S,
                rows.take(some),
                full=True,
                span=span,
                rows_hash=rows_hash,
                more=span.end < 1 << 64,
            )
        )
    return reports


@pytest.mark.slow
async def test_a_state_of_two_hundred_thousand_rows_reaches_every_member_whole(
    tmp_path: Path,
) -> None:
    rows = large_state()
    mirror = UsageMap()
    mirror.apply(Report(ME, 1, NS_PER_S, rows, full=True))
    reports = reports_of(rows, mirror.hash_of(ME.broker))
    whole = [report for report in reports if isinstance(report, Report) and report.full]
    assert len(whole) > 20
    async with exchanges(tmp_path) as (mine, other), asyncio.timeout(TIMEOUT_S):
        sender, *receivers = (
            Traffic(one, CompactDialect(), no_end()) for one in (mine, mine, other)
        )

        async def send() -> None:
            async with asyncio.TaskGroup() as sends:
                for report in reports:
                    await sender._send_one(report, sends)
            assert sender.dropped == {}

        maps = [UsageMap(), UsageMap()]

        async def receive(exchange: Exchange, traffic: Traffic[Message], usage: UsageMap) -> None:
            last = 0
            while last < len(reports):
                for payload in await exchange.receive():
                    message = traffic.decoded(payload)
                    assert isinstance(message, Report)
                    assert message.sequence == last + 1
                    usage.apply(message)
                    last = message.sequence
                    if last == len(reports) - len(whole):
                        # The round alone made it whole.
                        assert usage.hash_of(ME.broker) == message.rows_hash

        # A message that is not sent is not waited for.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            tasks.create_task(receive(mine, receivers[0], maps[0]))
            tasks.create_task(receive(other, receivers[1], maps[1]))
    for usage, traffic in zip(maps, receivers, strict=True):
        assert usage.count_of(ME.broker) == 2 * GROUPS
        assert usage.hash_of(ME.broker) == mirror.hash_of(ME.broker)
        assert traffic.dropped == {}


# Bombs.


def bomb(size: int, *, states_size: bool = True) -> bytes:
    compressor = zstd.ZstdCompressor()
    if states_size:
        compressor.set_pledged_input_size(size)
    return b"\x01\x01" + compressor.compress(bytes(size)) + compressor.flush()


class Turns:
    """Counts the messages that the reader takes, and how many of them between two turns of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = self.in_turn = self.worst = self.opened_bytes = 0
        real_decoded, real_open = Traffic.decoded, decompressed

        def decoded(traffic: Traffic[Message], payload: bytes) -> Message | None:
            self.taken += 1
            self.in_turn += 1
            self.worst = max(self.worst, self.in_turn)
            return real_decoded(traffic, payload)

        def opened(frame: bytes, limit: int) -> bytes:
            body = real_open(frame, limit)
            self.opened_bytes += len(body)
            return body

        monkeypatch.setattr(Traffic, "decoded", decoded)
        monkeypatch.setattr("rgd.wire.codec.decompressed", opened)

    async def tick(self) -> None:
        """Somebody who wants a turn between any two messages."""
        while True:
            self.in_turn = 0
            await asyncio.sleep(0)


def daemon_over(exchange: Exchange, folder: Path) -> RgdDaemon:
    """A daemon, started, that nobody runs: the test takes its messages."""
    policies = table(MemoryBus(), "me")
    daemon = daemon_of(BrokerSettings(Sender("me", 1)), folder, exchange, policies)
    daemon.core.handle(Started(daemon.now()))
    return daemon


async def flooded(exchange: Exchange, receiver: RgdDaemon, payloads: list[bytes]) -> None:
    """Let a daemon take what was flooded, up to the hello that ends it."""
    sender = Sender("last", 9)
    for payload in [*payloads, codec.encode(Hello(sender))]:
        await exchange.publish(payload)
    receiver.traffic.reached()
    while receiver.core.peers.get("last") is None:
        for payload in await receiver.parts.exchange.receive():
            receiver._take(Received(payload, 0))
            await asyncio.sleep(0)


async def test_bombs_are_refused_unopened_and_others_have_their_turns_between_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bombs = [bomb(codec.MESSAGE_MAX - 2), bomb(16 * 1024), bomb(200_000, states_size=False)]
    payloads = 300 * bombs
    turns = Turns(monkeypatch)
    async with exchanges(tmp_path) as (mine, other), asyncio.timeout(TIMEOUT_S):
        daemon = daemon_over(other, tmp_path)
        ticking = asyncio.create_task(turns.tick())
        await flooded(mine, daemon, payloads)
        ticking.cancel()
    assert daemon.traffic.dropped == {"oversize": 600, "missing": 300}
    assert turns.opened_bytes == 0
    assert (turns.taken, turns.worst) == (len(payloads) + 1, 1)
