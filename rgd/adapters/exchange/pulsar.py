"""The exchange on Pulsar, Apache's or the embedded one: a session that outlasts its clients.

Law: that of the port. From its `open` on, an exchange receives all messages that the broker does not drop. Messages published some seconds after the broker's return are read back. A pause
between two attempts is at most `PAUSE_S_MAX`, and an attempt takes as long as `open_timeout_s` where nothing
answers. There is one session, and while it is dead at most one more that is being opened. A
replaced one is closed.
Why: the client reconnects by itself, with pauses that grow to a minute (its option for that is missing in
the Python binding, 3.13). After an outage of 100 s it came back 27 to 43 s late.
A session whose credential files changed is replaced too, once another one is open with the changed files; if they are
refused, it stays (`credential_watch`).
How: a session is dead when its reader or the client reports it (`PulsarSession.fault`), or when none of our messages is
read back (`echo`). The dead one stays until another is open.
The session's reading thread puts messages into one bounded queue.
`rgd.adapters.exchange.pulsar_session` is one session. The policies table is in `pulsar_table`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from rgd.adapters.exchange.credential_watch import CredentialWatch
from rgd.adapters.exchange.echo import EchoWatch
from rgd.adapters.exchange.inbox import WAITING_BYTES_MAX, PayloadInbox
from rgd.adapters.exchange.pulsar_errors import TopicMissing
from rgd.adapters.exchange.pulsar_log import log, log_bug
from rgd.adapters.exchange.pulsar_session import Delivery, PulsarSession, PulsarSettings
from rgd.backoff import Backoff
from rgd.errors import RgdError
from rgd.ports.exchange import DROPS, ExchangeClosed, ExchangeDown, Received

__all__ = ["PulsarExchange", "PulsarSettings"]

USAGE_TOPIC: Final = "non-persistent://public/rgd/usage"

#: Most messages that wait for `receive`; beyond that the oldest is dropped.
QUEUE_MAX: Final = 10_000

#: Time between two checks of the session.
LOOK_S: Final = 0.2
#: The first and the longest pause between two attempts, before jitter.
PAUSE_S_FIRST: Final = 0.1
PAUSE_S_MAX: Final = 2.0

#: Longest description of an unexpected error.
TROUBLE_CHARS_MAX: Final = 200

#: Creates the namespace of the topic; raises ExchangeDown.
Prepare = Callable[[], Awaitable[None]]

_DEFAULTS: Final = PulsarSettings()


class PulsarExchange:
    """A member of an exchange topic; fulfils `rgd.ports.exchange.Exchange`.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: a non-persistent topic, by its full name.
        settings: how to reach the broker; `send_timeout_ms` is also the patience with messages that do
            not come back.
        queue_max: most messages that wait for `receive`; beyond that the oldest is dropped and counted.
        queue_bytes_max: most bytes of them; the same.
        prepare: creates the topic's namespace; called before the first attempt, and before a further one when the broker
            reported that the topic does not exist.
        is_prepared: another exchange prepares the same namespace: not before the first attempt then.
    """

    def __init__(  # noqa: PLR0913 -- all but two are options, by keyword
        self,
        url: str,
        topic: str = USAGE_TOPIC,
        *,
        settings: PulsarSettings = _DEFAULTS,
        queue_max: int = QUEUE_MAX,
        queue_bytes_max: int = WAITING_BYTES_MAX,
        prepare: Prepare | None = None,
        is_prepared: bool = False,
    ) -> None:
        self._url = url
        self._topic = topic
        self._settings = settings
        self._prepare = prepare
        self._backoff = Backoff.with_own_dice(first_s=PAUSE_S_FIRST, pause_s_max=PAUSE_S_MAX)
        self._credentials = CredentialWatch(settings)
        self._echo = EchoWatch(settings.send_timeout_ms / 1000)
        self._queue_max = queue_max
        self._queue_bytes_max = queue_bytes_max
        self._inbox: PayloadInbox | None = None
        self._session: PulsarSession | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_closed = False
        #: Whether the namespace is to be prepared before the next attempt.
        self._is_topic_missing = not is_prepared
        #: Read-back messages when the current problem was logged; None while there is none.
        self._told_at: int | None = None
        #: Why nothing can be published or read now; None if there is no problem.
        self.trouble: str | None = None
        #: The kind of the last logged error of the current problem.
        self._logged: str | None = None
        #: Of all sessions; each reason is there from the start, because reading threads count.
        self.dropped: Counter[str] = Counter(dict.fromkeys(DROPS, 0))
        #: Attempts to open another session, ever.
        self.attempts = 0

    async def open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        assert self._session is None, "opened twice"
        loop = asyncio.get_running_loop()
        self._inbox = PayloadInbox(loop, self._queue_max, self.dropped, self._queue_bytes_max)
        session = PulsarSession(self._url, self._topic, self._settings, self.dropped)
        self._session = session
        try:
            await self._join(session)
            self._check_open()
        except BaseException:
            self._session = None
            await session.close()
            raise
        self._watching = loop.create_task(self._watch())

    async def publish(self, payload: bytes) -> None:
        session = self._session
        if session is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        self._echo.published(payload, asyncio.get_running_loop().time())
        try:
            await session.send(payload)
        except ExchangeClosed as exc:
            if self._is_closed:
                raise
            raise ExchangeDown(f"{self._topic}: its session was replaced by a new one") from exc

    async def receive(self) -> list[bytes]:
        return [received.payload for received in await self.receive_dated()]

    async def receive_dated(self) -> list[Received]:
        if self._inbox is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._inbox.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._inbox:
            self._inbox.close()
        if self._watching:
            self._watching.cancel()
            # `wait` and not `await`, to ignore its exception.
            await asyncio.wait({self._watching})
        if self._session:
            try:
                await self._session.close()
            except Exception as error:  # noqa: BLE001 -- whoever leaves can do nothing about it
                log_bug(self._topic, "closing the session", error)

    async def _join(self, session: PulsarSession) -> None:
        """Open a session, after its namespace was prepared where that is due."""
        if self._is_topic_missing and self._prepare is not None:
            await self._prepare()
            self._check_open()
        self._is_topic_missing = False
        try:
            await session.open(self._take, from_start=False)
        except TopicMissing:
            self._is_topic_missing = True
            raise

    def _check_open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed meanwhile")

    def _take(self, delivery: Delivery) -> None:
        """Pass a message on; in a reading thread."""
        self._echo.received(delivery.payload)
        assert self._inbox is not None
        self._inbox.put(Received(delivery.payload, delivery.published_ms))

    # The watch.

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 -- without the watch a dead session stays
                self._met(error)

    async def _look(self) -> None:
        session, now_s = self._session, asyncio.get_running_loop().time()
        assert session is not None
        is_overdue = self._echo.is_overdue(now_s)
        if session.fault is not None:
            await self._replace(session.fault)
        elif is_overdue:
            await self._replace("what is published does not come back")
        elif self._told_at not in (None, self._echo.read_back):
            log.info("%s: works again", self._topic)
            self._told_at = self.trouble = self._logged = None
            self._backoff.reset()
        elif await self._credentials.is_due(session.credentials, now_s):
            await self._renew()

    async def _renew(self) -> None:
        """Open another session with changed credentials; the present one stays if that fails."""
        error = await self._open_another()
        if error is None:
            log.info("%s: reconnected with the changed token or certificates", self._topic)
        else:
            log.warning(
                "%s: the token or certificates changed, and no session could be opened with them; the old "
                "session goes on: %s",
                self._topic,
                str(error)[:TROUBLE_CHARS_MAX],
            )

    def _met(self, error: Exception) -> None:
        """Log an unexpected error; the traceback once for each kind in a row."""
        if self._told_at is None:
            self._told_at = self._echo.read_back
        kind = type(error).__name__
        description = f"{kind}: {error}"[:TROUBLE_CHARS_MAX]
        self.trouble = f"watching the session with Pulsar failed: {description}"
        if self._logged != kind:
            self._logged = kind
            log_bug(self._topic, "watching the session", error)

    async def _replace(self, reason: str) -> None:
        """Retry until another session is open."""
        if self._told_at is None:
            log.warning("%s: the session is dead, opening another: %s", self._topic, reason)
        self._told_at = self._echo.read_back
        self.trouble = f"the session with Pulsar is dead: {reason}"
        loop, spent_s = asyncio.get_running_loop(), 0.0
        while True:
            # A Pulsar that has just started answers late. An attempt that waited for it in vain was a pause.
            await asyncio.sleep(max(PAUSE_S_FIRST / 2, self._backoff.next_s() - spent_s))
            began_s = loop.time()
            error = await self._open_another()
            if error is None:
                return
            if isinstance(error, RgdError):
                self.trouble = str(error)
            else:
                self._met(error)
            spent_s = loop.time() - began_s

    async def _open_another(self) -> Exception | None:
        """Open another session and close the present one, once its sends are answered; returns what failed."""
        self.attempts += 1
        fresh = PulsarSession(self._url, self._topic, self._settings, self.dropped)
        try:
            await self._join(fresh)
        except BaseException as error:
            await fresh.close()
            # No thread, no descriptor: the next attempt may have.
            if isinstance(error, Exception):
                return error
            raise
        old, self._session = self._session, fresh
        self._echo.restart()
        assert old is not None
        if old.fault is None and self._told_at is None:
            await old.answered()
        await old.close(is_replaced=True)
        return None
