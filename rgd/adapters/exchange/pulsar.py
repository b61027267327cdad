"""The exchange and the policies table on Pulsar, Apache's or the embedded one.

Law: as the ports say. An exchange hears from its `open` on all that the broker does not drop; a table
view starts from a snapshot and is told every change after it, each once and in the topic's order.
How: the session's reading thread puts messages into one bounded queue. A table is a reader of a
compacted topic from its start: `open` writes a marker, and what lies before the marker is the
snapshot. So there is no moment between reading and listening, and an empty topic is nothing special
(`create_table_view` fails on the embedded broker's). Positions only rise: after a reconnect a broker
may deliver a message twice.
Connecting, sending and closing are in `rgd.adapters.exchange.pulsar_session`; an exchange's session is
replaced by a new one when it is dead (`pulsar_lasting`).
"""

import asyncio
import contextlib
import threading
from typing import Final

from rgd.adapters.exchange.inbox import ChangeInbox, Inbox, last_words
from rgd.adapters.exchange.pulsar_errors import translate
from rgd.adapters.exchange.pulsar_lasting import LastingSession, Prepare
from rgd.adapters.exchange.pulsar_session import (
    Delivery,
    Position,
    PulsarSession,
    PulsarSettings,
)
from rgd.ports.exchange import ExchangeClosed

__all__ = ["PulsarExchange", "PulsarPolicyStore", "PulsarSettings"]

USAGE_TOPIC: Final = "non-persistent://public/rgd/usage"
POLICIES_TOPIC: Final = "persistent://public/rgd/policies"

#: Messages that wait for `receive`; then the oldest goes.
QUEUE_MAX: Final = 10_000
#: Changes that wait for `changes`; then only the last one of each key stays.
CHANGES_MAX: Final = 10_000
#: Records of a table that are read at its opening; then only the last one of each key stays.
RECORDS_MAX: Final = 200_000
#: The record that `PulsarPolicyStore.open` writes to find the end of the topic; never handed out.
MARKER_KEY: Final = "rgd:opened"

_DEFAULTS: Final = PulsarSettings()


class PulsarExchange:
    """A member of an exchange topic; fulfils `rgd.ports.exchange.Exchange`.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: a non-persistent topic, by its full name.
        settings: how to reach the broker.
        queue_max: messages that wait for `receive`; then the oldest goes and is counted.
        prepare: makes the topic's namespace, where it went away while we were there.
    """

    def __init__(
        self,
        url: str,
        topic: str = USAGE_TOPIC,
        *,
        settings: PulsarSettings = _DEFAULTS,
        queue_max: int = QUEUE_MAX,
        prepare: Prepare | None = None,
    ) -> None:
        self._topic = topic
        self._queue_max = queue_max
        self._session = LastingSession(url, topic, settings, prepare=prepare)
        self._inbox: Inbox[bytes] | None = None
        self._is_closed = False

    @property
    def dropped(self) -> int:
        return self._inbox.dropped if self._inbox else 0

    @property
    def unauthenticated(self) -> int:
        return self._session.unauthenticated

    @property
    def trouble(self) -> str | None:
        return self._session.trouble

    @property
    def attempts(self) -> int:
        """Attempts to open another session, after the first one was open."""
        return self._session.attempts

    async def open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        assert self._inbox is None, "opened twice"
        inbox: Inbox[bytes] = Inbox(asyncio.get_running_loop(), self._queue_max)
        await self._session.open(lambda delivery: inbox.put(delivery.payload))
        self._inbox = inbox

    async def publish(self, payload: bytes) -> None:
        await self._session.publish(payload)

    async def receive(self) -> list[bytes]:
        if self._inbox is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._inbox.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._inbox:
            self._inbox.close()
        await self._session.close()


class PulsarPolicyStore:
    """A table over one compacted topic; fulfils `rgd.ports.exchange.PolicyStore`.

    Args:
        url: as `PulsarExchange`.
        topic: a persistent topic, not partitioned, by its full name.
        settings: how to reach the broker.
    """

    def __init__(
        self, url: str, topic: str = POLICIES_TOPIC, *, settings: PulsarSettings = _DEFAULTS
    ) -> None:
        self._url = url
        self._topic = topic
        self._settings = settings
        self._session: PulsarSession | None = None
        self._changes: ChangeInbox | None = None
        self._is_closed = False

    async def open(self) -> list[tuple[str, bytes]]:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        assert self._session is None, "opened twice"
        loop = asyncio.get_running_loop()
        changes = ChangeInbox(loop, CHANGES_MAX)
        table = _Table(loop, changes)
        self._session = PulsarSession(self._url, self._topic, self._settings)
        try:
            await self._session.open(table.on_delivery, from_start=True)
            marker = await self._session.send(b"1", key=MARKER_KEY)
            records = await table.snapshot(marker, stall_s_max=self._settings.open_timeout_s)
        except TimeoutError as exc:
            await self._abandon()
            raise translate("Timeout", url=self._url, topic=self._topic) from exc
        except BaseException:
            await self._abandon()
            raise
        self._changes = changes
        return records

    async def put(self, key: str, value: bytes) -> None:
        assert key not in {"", MARKER_KEY}, "a key is not empty and not the marker"
        if self._session is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        await self._session.send(value, key=key)

    async def changes(self) -> list[tuple[str, bytes]]:
        if self._changes is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._changes.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._changes:
            self._changes.close()
        if self._session:
            await self._session.close()

    async def _abandon(self) -> None:
        session, self._session = self._session, None
        if session:
            await session.close()


class _Table:
    """Keeps deliveries until the snapshot is taken; tells them as changes afterwards."""

    def __init__(self, loop: asyncio.AbstractEventLoop, changes: ChangeInbox) -> None:
        self._loop = loop
        self._changes = changes
        self._lock = threading.Lock()
        self._records: list[tuple[str, bytes]] = []
        self._records_max = RECORDS_MAX
        self._position: Position = (-1, -1, -1)
        self._marker: Position | None = None
        self._marker_read = asyncio.Event()
        self._is_snapshot_taken = False

    def on_delivery(self, delivery: Delivery) -> None:
        """Take a record in; in the reading thread."""
        with self._lock:
            if delivery.position <= self._position:
                return
            self._position = delivery.position
            if delivery.key not in {"", MARKER_KEY}:
                self._apply(delivery.key, delivery.payload)
            is_marker_read = self._marker is not None and delivery.position >= self._marker
            if is_marker_read:
                self._marker = None
        if is_marker_read:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._marker_read.set)

    async def snapshot(self, marker: Position, *, stall_s_max: float) -> list[tuple[str, bytes]]:
        """The table once everything up to the marker is in it; all that follows are changes.

        Anything at or after the marker's position shows that it was passed: another opener's marker
        may have replaced ours in a compaction meanwhile. A large table may take its time.

        Raises:
            TimeoutError: the marker was not passed, and nothing came for `stall_s_max`.
        """
        with self._lock:
            seen = self._position
            self._marker = marker
            if seen >= marker:
                self._marker_read.set()
        while not self._marker_read.is_set():
            try:
                async with asyncio.timeout(stall_s_max):
                    await self._marker_read.wait()
            except TimeoutError:
                if self._position == seen:
                    raise
                seen = self._position
        with self._lock:
            self._is_snapshot_taken = True
            records, self._records = self._records, []
            return records

    def _apply(self, key: str, value: bytes) -> None:
        if self._is_snapshot_taken:
            self._changes.put((key, value))
            return
        self._records.append((key, value))
        if len(self._records) > self._records_max:
            self._forget_superseded()

    def _forget_superseded(self) -> None:
        """Of the older half keep the last record of each key, as a compaction would."""
        middle = len(self._records) // 2
        older = last_words(self._records[:middle])
        self._records = [*older.items(), *self._records[middle:]]
        # Twice, or a table of many keys would be gone through again for every single record.
        self._records_max = max(self._records_max, 2 * len(self._records))
