"""The policies table on Pulsar, Apache's or the embedded one: a reader of one compacted topic.

Laws: those of `rgd.ports.exchange.PolicyStore`. A table starts from a snapshot and receives every change
after it, each once and in the topic's order, for as long as its session lives. A session is
lost when its connection breaks, when the broker no longer answers, or when the token or the certificates changed. Then
`changes` raises ExchangeDown, and `open` reads the topic from its start. So a topic that was
replaced during a disconnection is read completely, whatever its positions are.

How: `open` writes a marker, and the records before the marker are the snapshot. So there is no gap
between reading and listening, and an empty topic needs no special case (`create_table_view` fails on the
embedded broker's). The reader notices a broker that no longer answers: it writes nothing, so a compacted topic that is
kept for ever does not grow.

Connecting, sending and closing are in `rgd.adapters.exchange.pulsar_session`.
`rgd.app.policies.table` opens a lost table again.
"""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from rgd.adapters.exchange.credential_watch import CredentialWatch
from rgd.adapters.exchange.inbox import ChangeInbox
from rgd.adapters.exchange.pulsar_errors import translate
from rgd.adapters.exchange.pulsar_log import log_bug
from rgd.adapters.exchange.pulsar_session import Delivery, Position, PulsarSession, PulsarSettings
from rgd.ports.exchange import KEY_CHARS_MAX, PAYLOAD_BYTES_MAX, ExchangeClosed, ExchangeDown

POLICIES_TOPIC: Final = "persistent://public/rgd/policies"

#: Most records that wait for `open` or `changes`; beyond that only the last one of each key stays.
RECORDS_MAX: Final = 200_000
#: Most bytes of keys and values of a snapshot; further records are dropped and counted.
#: 100,000 namespaces with all settings are 60 MB.
SNAPSHOT_BYTES_MAX: Final = 256 << 20
#: The record that `PulsarPolicyStore.open` writes to find the end of the topic; never delivered.
MARKER_KEY: Final = "rgd:opened"

#: Time between two looks at the session.
LOOK_S: Final = 0.05

_DEFAULTS: Final = PulsarSettings()


class PulsarPolicyStore:
    """A table over one compacted topic; fulfils `rgd.ports.exchange.PolicyStore`.

    Args:
        url: as `PulsarExchange`.
        topic: a persistent topic, not partitioned, by its full name.
        settings: how to reach the broker.
        value_bytes_max: larger values are dropped and counted; rgd never writes them.
    """

    def __init__(
        self,
        url: str,
        topic: str = POLICIES_TOPIC,
        *,
        settings: PulsarSettings = _DEFAULTS,
        value_bytes_max: int = PAYLOAD_BYTES_MAX,
    ) -> None:
        self._url = url
        self._topic = topic
        self._settings = settings
        self._value_bytes_max = value_bytes_max
        self._session: PulsarSession | None = None
        self._changes: ChangeInbox | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_closed = False
        self._table: _Table | None = None

    @property
    def dropped(self) -> int:
        return self._table.dropped if self._table else 0

    async def open(self) -> list[tuple[str, bytes]]:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        if self._changes is not None and not self._changes.is_closed:
            self._changes.close(ExchangeDown(f"{self._topic} is opened again"))
        await self._abandon()
        loop = asyncio.get_running_loop()
        changes = ChangeInbox(loop, RECORDS_MAX)
        table = self._table = _Table(loop, changes, self._value_bytes_max, dropped=self.dropped)
        skipped: Counter[str] = Counter()
        session = self._session = PulsarSession(self._url, self._topic, self._settings, skipped)
        try:
            await session.open(table.on_delivery, from_start=True)
            marker = await session.send(b"1", key=MARKER_KEY)
            self._watching = loop.create_task(self._watch(session, table))
            records = await table.snapshot(
                marker, stall_s_max=self._settings.open_timeout_s, skipped=skipped.total
            )
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
        assert len(key) <= KEY_CHARS_MAX, "keys have a limit"
        if self._changes is None or self._session is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        if self._changes.is_closed:
            raise ExchangeDown(f"{self._topic} at {self._url} is being opened again")
        try:
            await self._session.send(value, key=key)
        except ExchangeClosed as exc:
            if self._is_closed:
                raise
            raise ExchangeDown(f"{self._topic} at {self._url} was lost meanwhile") from exc

    async def changes(self) -> list[tuple[str, bytes]]:
        if self._changes is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._changes.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._changes:
            self._changes.close()
        await self._abandon()

    async def _abandon(self) -> None:
        """Leave the current session, if there is one."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
        session, self._session = self._session, None
        if session:
            await session.close()

    async def _watch(self, session: PulsarSession, table: "_Table") -> None:
        """Report that the table is lost, also when the watch itself fails."""
        try:
            why = await self._until_lost(session)
        except Exception as error:  # noqa: BLE001 -- the boundary of a task
            # For example "can't start new thread". An unwatched table might be old for ever.
            log_bug(self._topic, "watching the table", error)
            why = "internal error while it was watched"
        table.lose(ExchangeDown(f"{self._topic} at {self._url}: {why}"))

    async def _until_lost(self, session: PulsarSession) -> str:
        """Wait until the table is lost; returns the reason."""
        watch, loop = CredentialWatch(self._settings), asyncio.get_running_loop()
        while session.fault is None:
            await asyncio.sleep(LOOK_S)
            if await watch.is_due(session.credentials, loop.time()):
                await session.answered()
                return "its token or certificates changed"
        return session.fault


class _Table:
    """Puts deliveries into the inbox, and knows when those of the snapshot are there."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        changes: ChangeInbox,
        value_bytes_max: int = PAYLOAD_BYTES_MAX,
        snapshot_bytes_max: int = SNAPSHOT_BYTES_MAX,
        *,
        dropped: int = 0,
    ) -> None:
        self._loop = loop
        self._snapshot_bytes_max = snapshot_bytes_max
        self._changes = changes
        self._value_bytes_max = value_bytes_max
        self._lock = threading.Lock()
        #: Position of the last record.
        self.position: Position = (-1, -1, -1)
        self._marker: Position | None = None
        self._marker_read = asyncio.Event()
        #: Records that were dropped because of their size, those before this table included.
        self.dropped = dropped

    def on_delivery(self, delivery: Delivery) -> None:
        """Add a record; in the reading thread."""
        with self._lock:
            self.position = delivery.position
            if delivery.key not in {"", MARKER_KEY}:
                self._apply(delivery.key, delivery.payload)
            is_marker_read = self._marker is not None and delivery.position >= self._marker
            if is_marker_read:
                self._marker = None
        if is_marker_read:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
                self._loop.call_soon_threadsafe(self._marker_read.set)

    def lose(self, error: ExchangeDown) -> None:
        """Raise this in the waiters for the snapshot or a change; on the loop."""
        self._changes.close(error)
        self._marker_read.set()

    async def snapshot(
        self, marker: Position, *, stall_s_max: float, skipped: Callable[[], int]
    ) -> list[tuple[str, bytes]]:
        """The table with all records up to the marker; those after what is returned are changes.

        Any record at or after the marker's position proves that it was passed, because another opener's marker
        may have replaced ours in a compaction meanwhile. A large table may take long.

        Args:
            marker: its position.
            stall_s_max: longest time without any record.
            skipped: how many unreadable records were skipped.

        Raises:
            TimeoutError: the marker was not passed, and nothing came or was skipped for `stall_s_max`.
            ExchangeDown: the table was lost meanwhile.
        """
        with self._lock:
            seen = (self.position, skipped())
            self._marker = marker
            if self.position >= marker:
                self._marker_read.set()
        while not self._marker_read.is_set():
            try:
                async with asyncio.timeout(stall_s_max):
                    await self._marker_read.wait()
            except TimeoutError:
                before, seen = seen, (self.position, skipped())
                if seen == before:
                    raise
        return self._changes.drain()

    def _apply(self, key: str, value: bytes) -> None:
        is_too_large = len(key) > KEY_CHARS_MAX or len(value) > self._value_bytes_max
        # A change is never dropped: it would not come again.
        is_full = self._changes.bytes > self._snapshot_bytes_max and not self._marker_read.is_set()
        if is_too_large or is_full:
            self.dropped += 1
        else:
            self._changes.put((key, value))
