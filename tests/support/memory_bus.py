"""The in-memory bus: exchanges and policy stores of one process, without a broker.

It keeps the ports' laws in the simplest way: a published message is in every member's queue before `publish` returns, in one order
for all. A table lives as long as its bus.
It loses messages only to a full queue; the simulator has faults (`sim`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from rgd.adapters.exchange.inbox import ChangeInbox, PayloadInbox
from rgd.ports.exchange import (
    PAYLOAD_BYTES_MAX,
    ExchangeClosed,
    ExchangeDown,
    PayloadTooLarge,
    Received,
)

#: Most messages that wait for one member's `receive`; beyond that the oldest is dropped.
QUEUE_MAX: Final = 10_000


class MemoryBus:
    """One exchange topic and one policies table; use it from one event loop."""

    def __init__(self, unix_ms: Callable[[], int] = lambda: 0) -> None:
        #: The clock of publish times.
        self.unix_ms = unix_ms
        #: The queue of each open member, and of each open store.
        self.inboxes: set[PayloadInbox] = set()
        self.change_inboxes: set[ChangeInbox] = set()
        #: Every record of the table, as in a topic.
        self.records: list[tuple[str, bytes]] = []

    @property
    def table(self) -> dict[str, bytes]:
        """The last value of each key."""
        return {key: value for key, value in dict(self.records).items() if value}

    def compact(self) -> None:
        """Keep only the last record of each key, like a compaction in Pulsar."""
        self.records = list(self.table.items())

    def cut_table(self, reason: str = "the connection broke") -> None:
        """Make the table fail for all stores that have opened it, until they open it again."""
        for changes in self.change_inboxes:
            changes.close(ExchangeDown(reason))
        self.change_inboxes.clear()

    def wipe_table(self) -> None:
        """Replace the table by an empty one."""
        self.records = []
        self.cut_table("the table is another one")


class MemoryExchange:
    """A member of a bus; fulfils `rgd.ports.exchange.Exchange`."""

    def __init__(self, bus: MemoryBus, *, queue_max: int = QUEUE_MAX) -> None:
        self._bus = bus
        self._queue_max = queue_max
        self.dropped: Counter[str] = Counter()
        self._inbox: PayloadInbox | None = None
        self._is_closed = False

    @property
    def trouble(self) -> str | None:
        return None

    async def open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed("the exchange was closed")
        assert self._inbox is None, "opened twice"
        self._inbox = PayloadInbox(asyncio.get_running_loop(), self._queue_max, self.dropped)
        self._bus.inboxes.add(self._inbox)

    async def publish(self, payload: bytes) -> None:
        self._require_open()
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise PayloadTooLarge(len(payload))
        received = Received(payload, self._bus.unix_ms())
        for inbox in self._bus.inboxes:
            inbox.put(received)

    async def receive(self) -> list[bytes]:
        return [received.payload for received in await self.receive_dated()]

    async def receive_dated(self) -> list[Received]:
        return await self._require_open().take()

    async def close(self) -> None:
        self._is_closed = True
        if self._inbox:
            self._bus.inboxes.discard(self._inbox)
            self._inbox.close()

    def _require_open(self) -> PayloadInbox:
        if self._inbox is None or self._is_closed:
            raise ExchangeClosed("the exchange is not open")
        return self._inbox


class MemoryPolicyStore:
    """A view of a bus's table; fulfils `rgd.ports.exchange.PolicyStore`."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self._changes: ChangeInbox | None = None
        self._is_closed = False

    @property
    def dropped(self) -> int:
        return 0

    async def open(self) -> list[tuple[str, bytes]]:
        if self._is_closed:
            raise ExchangeClosed("the policy store was closed")
        if self._changes:
            self._leave(self._changes)
        self._changes = ChangeInbox(asyncio.get_running_loop(), QUEUE_MAX)
        self._bus.change_inboxes.add(self._changes)
        return list(self._bus.records)

    async def put(self, key: str, value: bytes) -> None:
        assert key, "a key is not empty"
        if self._require_open().is_closed:
            raise ExchangeDown("the table is being opened again")
        if len(value) > PAYLOAD_BYTES_MAX:
            raise PayloadTooLarge(len(value))
        self._bus.records.append((key, value))
        for changes in self._bus.change_inboxes:
            changes.put((key, value))

    async def changes(self) -> list[tuple[str, bytes]]:
        return await self._require_open().take()

    async def close(self) -> None:
        self._is_closed = True
        if self._changes:
            self._leave(self._changes)

    def _leave(self, changes: ChangeInbox) -> None:
        self._bus.change_inboxes.discard(changes)
        changes.close()

    def _require_open(self) -> ChangeInbox:
        if self._changes is None or self._is_closed:
            raise ExchangeClosed("the policy store is not open")
        return self._changes


class AwayStore(MemoryPolicyStore):
    """A table that cannot be reached while somebody says so."""

    def __init__(self, bus: MemoryBus, *, is_away: bool = True) -> None:
        super().__init__(bus)
        self.is_away = is_away

    async def open(self) -> list[tuple[str, bytes]]:
        if self.is_away:
            raise ExchangeDown("refused")
        return await super().open()
