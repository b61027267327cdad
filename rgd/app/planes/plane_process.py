"""The plane's process: all of a daemon but its answers.

It is started by the gate (`rgd.app.planes.running`) with the numbers of two sockets, gets its settings from the gate, and ends
when the gate says so, or is gone. Signals that end a group of processes are the gate's, so they are ignored here.
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Final

import uvloop

from rgd.adapters.http import relay_plane
from rgd.adapters.http.plane import Plane
from rgd.adapters.http.settings import HttpSettings
from rgd.app.daemon import Agreeing
from rgd.app.live import Live
from rgd.app.logs import configure_logs
from rgd.app.planes.birth import Birth
from rgd.app.planes.plane_end import PlaneEnd
from rgd.app.planes.remote_gate import RemoteGate
from rgd.app.process import Halted, close_within, foreseen, tune_interpreter
from rgd.app.recent_events import RecentEvents
from rgd.app.wiring import assemble, core_of, tell_ready
from rgd.core.policies.model import GroupKey
from rgd.errors import RgdError
from rgd.version import __version__

#: How often the gate hears from here: what `/readyz` says.
HEALTH_S: Final = 0.05
#: How far this process stands back behind the gate where both want one core.
NICENESS: Final = 10

_PR_SET_PDEATHSIG: Final = 1


class PlaneHost:
    """What the gate calls by name."""

    def __init__(self, gate: RemoteGate, events: RecentEvents) -> None:
        self._gate = gate
        self.events = events
        #: None before it is made.
        self.daemon: Agreeing | None = None
        self.opened = asyncio.Event()
        self.until = asyncio.Event()
        #: By the loop's clock, when it gives its work up; None: it was not told to end.
        self.ends_at: float | None = None
        #: Ends streams; None before there may be any.
        self.drain_plane: Callable[[], None] | None = None

    def noted(
        self, unreported: list[int], backlogged: list[int], asked: Sequence[GroupKey]
    ) -> None:
        """There is something in the gate's news, and these groups were asked for the first time."""
        if asked and self.daemon is not None:
            self.daemon.groups_asked(asked)
        self._gate.news.noted(unreported, backlogged)

    def isolated(self) -> None:
        """The gate has heard nothing for so long that it grants no shares any more."""
        if self.daemon is not None:
            self.daemon.gate_isolated()

    def logged(self, event: MutableMapping[str, Any]) -> None:
        """The gate has logged something."""
        self.events(None, "", event)

    def doors_opened(self) -> None:
        """Callers are answered."""
        self.opened.set()

    def drain(self) -> None:
        """The daemon is about to stop."""
        if self.daemon is not None and self.drain_plane is not None:
            self.daemon.drain()
            self.drain_plane()

    def stop(self, within_s: float) -> None:
        """The last answer was given: end in order, within so long."""
        self.ends_at = asyncio.get_running_loop().time() + within_s
        self.opened.set()
        self.until.set()


def main() -> None:
    """Run until the gate says stop; the numbers of the sockets and the gate's version are the arguments."""
    link, relay = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:3])
    # The last one: a terminal may stop a process of another group that writes to it.
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGTTOU):
        signal.signal(name, signal.SIG_IGN)
    if sys.platform == "linux":
        # Where it hangs in C, too, it must not keep the log and the name.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    events = RecentEvents()
    configure_logs(recent=events)
    tune_interpreter()
    # Linux lets what runs have its core for some milliseconds before who is woken by a request gets it. This comes after
    # the imports: at this niceness they took so long, beside five busy processes of the session, that the gate killed
    # this process as hung. It holds for this thread and for those that it starts.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    sys.exit(uvloop.run(_serve(link, relay, events)))


async def _serve(link_socket: socket.socket, relay: socket.socket, events: RecentEvents) -> int:
    """Run; gives the exit code."""
    # Without a gate nobody is answered, so there is nothing to end in order.
    link = PlaneEnd(link_socket, on_end=lambda: os._exit(1))
    gate = RemoteGate(link)
    host = link.host = PlaneHost(gate, events)
    try:
        if (version := sys.argv[3]) != __version__:
            # What crosses the link may have changed with it.
            raise Halted(
                f"rgd {__version__} was installed over {version}, which runs; start it again"
            )
        await _run(link.ask_host("birth"), link, gate, host, relay)
    except (RgdError, OSError, BaseExceptionGroup) as error:
        cause = foreseen(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(cause, RgdError | OSError):
            raise
        link.ask_host("cannot_go_on", cause)
        return 1
    return 0


async def _run(
    birth: Birth, link: PlaneEnd, gate: RemoteGate, host: PlaneHost, relay: socket.socket
) -> None:
    settings = birth.settings
    for event in birth.logged:
        host.logged(event)
    async with AsyncExitStack() as stack:
        core = core_of(settings, gate, birth.incarnation, birth.former)
        daemon, exposition = assemble(settings, birth.url, core, Agreeing)
        stack.push_async_callback(daemon.close)
        host.daemon = daemon
        daemon.on_broken = _end_at_once
        daemon.on_halted = lambda reason: link.tell_host("cannot_go_on", Halted(reason))
        link.on_fault = partial(daemon.errors.note, "link")
        live = Live(daemon, host.events)
        plane = Plane(
            daemon,
            # Limits and tokens are the gate's.
            HttpSettings(batch_max=settings.http.batch_max),
            metrics=exposition.render,
            needs_token=lambda: settings.http.tokens_file is not None,
            log_door=daemon.parts.log_keeper,
            live_door=live,
        )
        host.drain_plane = plane.drain
        exposition.also(plane.samples)
        exposition.also(lambda: link.ask_host("samples"))
        exposition.also_process("rgd_gate", os.getppid())
        exposition.read_answers = lambda: link.ask_host("answer_times")
        await relay_plane.PlaneEnd(plane.forward, plane.is_read).attach(relay)
        link.tell_host("open_doors", plane.routes)
        await host.opened.wait()
        try:
            async with asyncio.TaskGroup() as tasks:
                works = {"live": live.follow, "health": lambda: _say_health(daemon, link)}
                beside = [
                    tasks.create_task(daemon.errors.keep(what, work), name=what)
                    for what, work in works.items()
                ]
                beside.append(tasks.create_task(tell_ready(daemon), name="ready"))
                await daemon.run(host.until, on_up=partial(link.tell_host, "is_up"))
                for task in beside:
                    task.cancel()
        finally:
            now_s = asyncio.get_running_loop().time()
            alone_s = settings.shutdown_timeout_ms / 1000
            await close_within(stack, alone_s if host.ends_at is None else host.ends_at - now_s)


def _end_at_once(_reason: str) -> None:
    """Another plane takes over; a goodbye would free the shares that the gate has."""
    os._exit(1)


async def _say_health(daemon: Agreeing, link: PlaneEnd) -> None:
    while True:
        link.tell_host("say_health", daemon.health())
        await asyncio.sleep(HEALTH_S)


if __name__ == "__main__":
    main()
