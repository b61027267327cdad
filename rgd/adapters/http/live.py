"""`/v1/live`: the whole cluster as this daemon knows it, as JSON or as a stream of server-sent events.

Laws: all who look get the same snapshot, encoded once. At most `SUBSCRIBERS_MAX` streams are open; the next one is
answered 503. A stream sends the newest snapshot when its client has read the one before, so a slow client misses
snapshots, and one that reads nothing is closed as any slow reader is (`guard`). Streams end when the daemon drains, and when
their token no longer counts.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from rgd.adapters.http.endpoint import ResponseSpec, read
from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.paging import Page, a_page, page_reply
from rgd.adapters.http.reply import EVENT_STREAM, Call, Reply, encode, json_reply
from rgd.core.policies.names import check_entity
from rgd.ports.daemon import Daemon
from rgd.ports.live_door import LiveDoor
from rgd.views.live_model import EventView, LiveGroupView, LiveView, PressureView

#: Streams that are open at once; pages and `rgd top` hold one each.
SUBSCRIBERS_MAX: Final = 64

LIVE: Final = "/v1/live"
LIVE_GROUPS: Final = "/v1/live/groups"


class Live:
    """Answers those who watch."""

    def __init__(self, daemon: Daemon, door: LiveDoor) -> None:
        self._daemon = daemon
        self._door = door
        #: A snapshot as JSON and as a message: the same object for all streams, as the relay sends such a one once.
        self._encoded: tuple[LiveView | None, bytes, bytes] = (None, b"", b"")
        #: Streams that are open, and those of them that wait for the next snapshot.
        self.open = 0
        self._waiting: set[asyncio.Timeout] = set()
        self._is_draining = False

    @read(LIVE, ResponseSpec(LiveView, also=EVENT_STREAM))
    async def view(self, _call: Call) -> Reply:
        """The whole cluster as this daemon knows it; with Accept: text/event-stream, a stream of it, one each round."""
        return Reply(200, self._written(self._door.view())[0])

    @read(f"{LIVE_GROUPS}/{{group}}", LiveGroupView, 404)
    async def group(self, call: Call) -> Reply:
        """One group with all its brokers, and its last ten minutes."""
        return json_reply(self._door.group(check_entity(call.path["group"], "group")))

    @read(LIVE_GROUPS, a_page(list[PressureView]), query=(Page,))
    async def groups(self, call: Call) -> Reply:
        """A page of groups by name, with the rows that they have in /v1/live."""
        names = self._daemon.snapshot().groups
        return await page_reply(call, LIVE_GROUPS, names, self._rows)

    def _rows(self, names: Sequence[str]) -> Iterator[tuple[str, Iterable[object]]]:
        return ((name, self._door.rows(name)) for name in names)

    @read("/v1/live/events", list[EventView])
    async def events(self, _call: Call) -> Reply:
        """The last events of the daemon's log, oldest first."""
        return json_reply(self._door.events())

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """A place among the streams.

        Raises:
            Overloaded: there is none left, or the daemon drains.
        """
        if self.open >= SUBSCRIBERS_MAX or self._is_draining:
            why = "the daemon stops" if self._is_draining else f"{SUBSCRIBERS_MAX} streams are open"
            raise Overloaded(f"{why}; ask for JSON, or come back")
        self.open += 1
        try:
            async with aclosing(self._messages()) as messages:
                yield messages
        finally:
            self.open -= 1

    def drain(self) -> None:
        """End all streams. Idempotent."""
        self._is_draining = True
        for waiting in self._waiting:
            waiting.reschedule(0)

    async def _messages(self) -> AsyncGenerator[bytes]:
        view = self._door.view()
        while not self._is_draining:
            yield self._written(view)[1]
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as waiting:
                    self._waiting.add(waiting)
                    try:
                        view = await self._door.next(view.number)
                    finally:
                        self._waiting.discard(waiting)

    def _written(self, view: LiveView) -> tuple[bytes, bytes]:
        known, encoded, message = self._encoded
        if known is not view:
            encoded = encode(view)
            message = b"id: %d\ndata: %b\n\n" % (view.number, encoded)
            self._encoded = (view, encoded, message)
        return encoded, message
