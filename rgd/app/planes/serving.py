"""Runs a daemon in two processes; this one is the gate's.

Doors open once the first plane has put policies in force. Stop, in this order: readiness falls, connections drain, the last
answer is given; then the plane collects the final counts, writes the closing record, says goodbye and ends. So nothing is
granted that the log does not have.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import structlog

from rgd.adapters.http.front import Front
from rgd.adapters.http.relay import Relay
from rgd.adapters.http.route_table import Route
from rgd.adapters.metrics.answer_times import AnswerTimes, Counts
from rgd.adapters.metrics.registry import HTTP_REQUEST_SECONDS
from rgd.app.clock import SystemClock
from rgd.app.credentials import Credentials
from rgd.app.door_wiring import address_of, http_settings
from rgd.app.logs import configure_logs
from rgd.app.planes.birth import Birth
from rgd.app.planes.gate_end import GateEnd
from rgd.app.planes.gate_process import GateProcess
from rgd.app.planes.running import PlaneRunner
from rgd.app.process import (
    BUILD,
    close_within,
    embedded_broker,
    new_incarnation,
    run_daemon,
    stop_signalled,
    unless,
)
from rgd.app.recent_events import EVENTS_MAX
from rgd.config.settings import Settings
from rgd.core.buckets.level import BucketSettings
from rgd.core.gate.local import LocalGate, hold_rounds
from rgd.core.units import NS_PER_MS, NS_PER_S, Nanos
from rgd.errors import Unavailable
from rgd.ports.metrics import Sample
from rgd.version import __version__

#: A plane that is busy is not one that hangs.
SILENT_S_MIN: Final = 10.0

#: Parts of `shutdown_timeout_ms` after which the plane gives up its own work, and is killed. What is between connections'
#: end (`door_wiring.DRAIN_PART`) and the first is for its last upload, which may take half (`log_wiring`).
PLANE_PART: Final = 0.9
KILL_PART: Final = 0.95

_log = structlog.get_logger("rgd")


def serve(settings: Settings, *, insecure: bool = False, say: Callable[[str], None]) -> None:
    """Run a daemon until SIGTERM or SIGINT.

    Args:
        settings: every setting, checked.
        insecure: listen beyond loopback without tokens.
        say: called with one line with broker, address and exchange, once the first plane is up.

    Raises:
        ConfigError: a configured value cannot be used.
        Unavailable: a port is taken, or the embedded broker has no build here.
        Halted: another daemon uses this broker's name, or this one had too many errors.
    """
    configure_logs()
    run_daemon(settings, lambda: _serve(settings, insecure=insecure, say=say))


async def _serve(settings: Settings, *, insecure: bool, say: Callable[[str], None]) -> None:
    async with AsyncExitStack() as stack:
        until = stop_signalled()
        embedded = embedded_broker(settings)
        url: str | None = settings.exchange.url
        if embedded is not None:
            stack.push_async_callback(embedded.stop)
            url = await unless(until, embedded.ensure())
        if url is None:
            return
        serving = Serving(settings, url, until, insecure=insecure)
        configure_logs(recent=serving.logged)
        works = {
            "plane": serving.runner.run,
            "keep_up": serving.keep_up,
            "credentials": serving.credentials.follow,
        }
        if embedded is not None:
            works["embedded"] = embedded.supervise
        stack.push_async_callback(serving.front.close)
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(serving.errors.keep(what, work), name=what)
                    for what, work in works.items()
                ]
                doors = tasks.create_task(serving.open(say), name="doors")
                await until.wait()
                doors.cancel()
                await serving.stop()
                for task in beside:
                    task.cancel()
        finally:
            serving.runner.kill()
            await close_within(stack, serving.left_s())
            _log.info("stopped", version=__version__, build=BUILD, broker=settings.broker.name)
    if serving.failure is not None:
        raise serving.failure


class Serving(GateProcess):
    """The gate with its door and its plane.

    Args:
        settings: every setting.
        url: of the exchange.
        until: set when it is to end.
        insecure: as `serve`.
    """

    def __init__(
        self, settings: Settings, url: str, until: asyncio.Event, *, insecure: bool
    ) -> None:
        exchange = settings.exchange
        held = hold_rounds(exchange.isolation_hold_rounds, exchange.expiry_rounds)
        hold_ns = held * exchange.round_ms * NS_PER_MS
        buckets = BucketSettings(
            burst_ns=settings.shares.burst_ms * NS_PER_MS,
            request_max_ms=round(settings.shares.request_max_s * 1000),
            round_ms=exchange.round_ms,
        )
        gate = LocalGate(buckets, topic_split=settings.shares.topic_split)
        super().__init__(gate, SystemClock(), until, exchange.on_isolation, hold_ns)
        self._settings = settings
        #: When `stop` was called.
        self._ending_at: Nanos | None = None
        self._url = url
        self._incarnation = new_incarnation()
        self._relay = Relay()
        self._answers = AnswerTimes(HTTP_REQUEST_SECONDS.buckets)
        self.front = Front(
            self,
            http_settings(settings, insecure=insecure),
            self._relay,
            observe=self._answers.observe_answer,
        )
        self.credentials = Credentials(self.front, settings.http)
        silent_s = exchange.expiry_rounds * exchange.round_ms / 2000
        self.runner = PlaneRunner(
            lambda: GateEnd(self.gate, self, self.errors, self.now),
            begun=self._begun,
            ended=self._ended,
            silent_s=max(SILENT_S_MIN, silent_s),
        )
        #: Whether the doors are open.
        self.is_open = False
        #: Set when a plane has said what calls it answers.
        self._may_open = asyncio.Event()
        #: What was logged last, for the live view of a plane to come.
        self._logged: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)

    async def open(self, say: Callable[[str], None]) -> None:
        """Listen, once there are policies, and say so once the first plane is up.

        Raises:
            Unavailable, ConfigError: as `Front.open`.
        """
        await self._may_open.wait()
        await self.front.open()
        self.is_open = True
        self.note("doors_opened")
        await self.up.wait()
        _log.info("starting", version=__version__, build=BUILD, broker=self._settings.broker.name)
        at, name = address_of(self._settings, self.front.port), self._settings.broker.name
        with suppress(OSError):  # who reads standard output may be gone, or its disk be full
            say(f"rgd starting broker={name} listening={at} exchange={self._url}")

    def left_s(self, part: float = 1.0) -> float:
        """What is left of a part of `shutdown_timeout_ms`; all of it before `stop`."""
        now = self.now()
        whole_ns = self._settings.shutdown_timeout_ms * NS_PER_MS
        return max(0.0, ((self._ending_at or now) + part * whole_ns - now) / NS_PER_S)

    async def stop(self) -> None:
        """End in order; a plane that never answered anybody has nothing to log."""
        self._ending_at = self.now()
        self.runner.is_last = True
        self.drain()
        # Streams are the plane's to end.
        self.note("drain")
        await self.front.close()
        self.note("stop", self.left_s(PLANE_PART))
        if not (self.is_open and self.has_plane):
            self.runner.kill()
        await self.runner.stop(self.left_s(KILL_PART))

    # The plane's process.

    async def _begun(self, end: GateEnd, relay: socket.socket) -> None:
        self.attach(end)
        await self._relay.attach(relay)

    def _ended(self, how: str) -> None:
        self.detach(f"its process {how}; another one takes over")
        if not self.up.is_set():
            self.fail(Unavailable(f"the plane's process {how}; see the log"))

    # What the plane calls.

    def birth(self) -> Birth:
        """What a plane begins with."""
        former = self.gate.sequences if self.had_plane else None
        return Birth(self._settings, self._url, self._incarnation, former, (*self._logged,))

    def open_doors(self, routes: Iterable[Route]) -> None:
        """Pass these calls on from now on."""
        self.front.serve(routes)
        self._may_open.set()
        if self.is_open:
            self.note("doors_opened")

    def samples(self) -> list[Sample]:
        """The figures of this process."""
        errors = self.errors.counts.items()
        return [
            *self.front.samples(),
            *self.credentials.samples(),
            Sample("rgd_plane_restarts_total", (), self.runner.restarts),
            *(Sample("rgd_internal_errors_total", (where,), count) for where, count in errors),
        ]

    def answer_times(self) -> Counts:
        """How long answers took."""
        return self._answers.counts

    # The log.

    def logged(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Show an event in the plane's live view (a structlog processor, called from any thread)."""
        kept = dict(event)
        self._logged.append(kept)
        self._loop.call_soon_threadsafe(self.note, "logged", kept)
        return event
