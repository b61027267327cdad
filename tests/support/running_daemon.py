"""A whole daemon beside the test: the real core, policies table and HTTP door, on a bus in memory.

It lives on an event loop of its own thread, so that a command under test can call it as it calls any
daemon. `ask` puts load on it through the fast path.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from structlog.testing import capture_logs

from rgd.adapters.http.settings import HttpSettings
from rgd.app.live import Live
from rgd.app.recent_events import RecentEvents
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Answer, Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS
from rgd.ports.answers import Health
from rgd.ports.log_door import LogDoor
from rgd.views.model import ExplainView
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.policy_tables import table
from tests.support.whole_daemon import HttpServer, RgdDaemon, daemon_of

_Result = TypeVar("_Result")

BROKER = "broker-1"
UP_S = 300
#: Short, so that it is soon up.
ROUND_NS = 20 * NS_PER_MS
#: Ten seconds of them: a machine that stands still for three rounds is not taken for a daemon that did.
PATIENCE_ROUNDS = 500


@dataclass
class RunningDaemon:
    """What a test may do with it."""

    daemon: RgdDaemon
    url: str = ""
    probe_url: str = ""
    log_door: LogDoor | None = None
    #: What the daemon logged.
    logged: list[MutableMapping[str, Any]] = field(default_factory=list)
    server: HttpServer = field(init=False)
    loop: asyncio.AbstractEventLoop = field(init=False)
    until: asyncio.Event | None = None
    up: threading.Event = field(default_factory=threading.Event)

    def ask(self, *requests: Request) -> list[Answer]:
        """Let callers ask."""
        return self._call(lambda: [self.daemon.acquire(request) for request in requests])

    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited."""
        return self._call(lambda: self.daemon.explain(name))

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self.daemon.snapshot()

    def _call(self, call: Callable[[], _Result]) -> _Result:
        """Do something on the daemon's own loop."""

        async def called() -> _Result:
            return call()

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(UP_S)


@contextmanager
def running_daemon(
    folder: Path,
    seed: PolicySnapshot,
    log_door: LogDoor | None = None,
    server_type: type[HttpServer] = HttpServer,
    **http: Any,
) -> Iterator[RunningDaemon]:
    """Run a daemon that begins with these policies, with further `HttpSettings`."""
    settings = HttpSettings(port=0, **http)
    running = RunningDaemon(memory_daemon(folder, seed), log_door=log_door)
    # What the daemon logs is not what the command under test prints.
    with capture_logs() as running.logged:
        yield from _run(running, settings, server_type)


def _run(
    running: RunningDaemon, settings: HttpSettings, server_type: type[HttpServer]
) -> Iterator[RunningDaemon]:
    thread = threading.Thread(target=lambda: asyncio.run(_serve(running, settings, server_type)))
    thread.start()
    try:
        assert running.up.wait(UP_S)
        yield running
    finally:
        if running.until is not None:
            with suppress(RuntimeError):  # it has ended by itself, and its loop with it
                running.loop.call_soon_threadsafe(running.until.set)
        thread.join(UP_S)
        assert not thread.is_alive()


def memory_daemon(folder: Path, seed: PolicySnapshot) -> RgdDaemon:
    """A daemon on a bus of its own, not run yet."""
    settings = BrokerSettings(
        Sender(BROKER, 1),
        round_ns=ROUND_NS,
        expiry_rounds=PATIENCE_ROUNDS,
        isolation_hold_rounds=PATIENCE_ROUNDS,
    )
    bus = MemoryBus()
    policies = table(bus, BROKER, seed, mend_s=1.0)
    return daemon_of(settings, folder, MemoryExchange(bus), policies)


async def _serve(
    running: RunningDaemon, settings: HttpSettings, server_type: type[HttpServer]
) -> None:
    running.loop, running.until = asyncio.get_running_loop(), asyncio.Event()
    live = Live(running.daemon, RecentEvents())
    server = server_type(
        running.daemon, settings, metrics=_no_metrics, log_door=running.log_door, live_door=live
    )
    running.server = server
    async with server:
        scheme = "https" if settings.tls_cert else "http"
        running.url = f"{scheme}://127.0.0.1:{server.port}"
        running.probe_url = f"http://127.0.0.1:{server.probe_port}"
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(live.follow())
            tasks.create_task(_say_when_up(running))
            await running.daemon.run(running.until, on_up=lambda: None)
            watching.cancel()
    await running.daemon.close()


async def _say_when_up(running: RunningDaemon) -> None:
    """Up is: it knows its shares, and the table can be written."""
    while running.daemon.health() != Health(ready=True) or running.daemon.core.mode != "live":  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(0)
    running.up.set()


async def _no_metrics(accept: str) -> tuple[bytes, str]:
    return accept.encode(), "text/plain"
