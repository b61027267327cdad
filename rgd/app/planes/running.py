"""Runs the plane's process beside the gate: starts it, watches it, starts it again, ends it.

Laws: it is started by exec, with its ends of two socket pairs, and no plane outlives this process (it ends with them, and
the kernel kills it with its parent). A plane that dies is started again at once, after `DEATHS_MAX` deaths within
`DEATHS_WITHIN_S` with growing pauses. One that says nothing for `silent_s` is killed.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from rgd.app.planes.gate_end import GateEnd
from rgd.backoff import Backoff
from rgd.version import __version__

#: Deaths within so many seconds after which it is not started at once.
DEATHS_MAX: Final = 3
DEATHS_WITHIN_S: Final = 10.0
PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0

#: How many looks in a row have to find it silent, so that a pause of the whole machine is not held against it; and
#: while it starts, because it has to load its modules and its groups file: the largest takes a minute of an idle core.
SILENT_LOOKS: Final = 10
STARTING_LOOKS: Final = 600

#: How often it is looked whether it has ended.
POLL_S: Final = 0.02

_log = structlog.get_logger("rgd.daemon")


class PlaneRunner:
    """Keeps one plane running.

    Args:
        make_end: makes the gate's end of a link.
        begun: called with a link that is connected, and the gate's socket for requests.
        ended: called when a plane has ended, with what is known of it.
        silent_s: how long a plane may say nothing.
    """

    def __init__(
        self,
        make_end: Callable[[], GateEnd],
        *,
        begun: Callable[[GateEnd, socket.socket], Awaitable[None]],
        ended: Callable[[str], None],
        silent_s: float,
    ) -> None:
        self._make_end = make_end
        self._begun = begun
        self._ended = ended
        self._silent_s = silent_s
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths: deque[float] = deque(maxlen=DEATHS_MAX)
        self._backoff = Backoff.with_own_dice(first_s=PAUSE_S, pause_s_max=PAUSE_S_MAX)
        self.restarts = 0
        #: Set when no other plane is to be started.
        self.is_last = False

    async def run(self) -> None:
        """Run planes until one ends that was the last."""
        while not self.is_last:
            how = await self._run_one()
            if not self.is_last:
                _log.error("the plane's process ended", how=how)
                self._ended(how)
                await asyncio.sleep(self._pause_s())
                self.restarts += 1

    async def _run_one(self) -> str:
        """Run a plane; gives how it ended."""
        try:
            process, end = await self._start()
        except OSError as error:
            return f"cannot be started: {error}"
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch(process, end))
            code = await _end_of(process) or 0
            watch.cancel()
        end.close()
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    async def stop(self, timeout_s: float) -> None:
        """Wait until the plane has ended by itself, and kill it if it does not in time."""
        self.is_last = True
        if (process := self._process) is None:
            return
        if await _end_of(process, timeout_s) is None:
            _log.error("killed the plane's process", reason="it did not end in time")
            process.kill()
            # It ends at once, but not where a disk hangs.
            await _end_of(process, timeout_s / 20)

    def kill(self) -> None:
        """End the plane at once; no other is started."""
        self.is_last = True
        if self._process is not None:
            self._process.kill()

    async def _start(self) -> tuple[subprocess.Popen[bytes], GateEnd]:
        link, link_of_plane = socket.socketpair()
        relay, relay_of_plane = socket.socketpair()
        with link_of_plane, relay_of_plane:
            fds = link_of_plane.fileno(), relay_of_plane.fileno()
            main = "rgd.app.planes.plane_process", *map(str, fds), __version__
            path = os.pathsep.join(sys.path)
            # Not by the loop, which copies the tables of the gate's memory: requests waited for 45 ms.
            self._process = process = subprocess.Popen(  # noqa: ASYNC220, S603 -- 0.3 ms; our own
                # It imports what this process does: `-m` alone would have the current folder first.
                (sys.executable, "-P", "-m", *main),
                stdin=subprocess.DEVNULL,
                pass_fds=fds,
                # A signal to the whole group, as Ctrl-C is, is for the gate, which ends the plane in order.
                process_group=0,
                # As `rgd serve` does: pages of 2 MiB are cleared at once when they are used first.
                env={"NUMPY_MADVISE_HUGEPAGE": "0"} | os.environ | {"PYTHONPATH": path},
            )
        loop = asyncio.get_running_loop()
        _transport, end = await loop.create_unix_connection(self._make_end, sock=link)
        try:
            await self._begun(end, relay)
        except BaseException:
            process.kill()
            raise
        return process, end

    async def _watch(self, process: subprocess.Popen[bytes], end: GateEnd) -> None:
        received_at, looks = end.received_at, 0
        while looks < (STARTING_LOOKS if end.is_starting else SILENT_LOOKS):
            await asyncio.sleep(self._silent_s / SILENT_LOOKS)
            looks = looks + 1 if end.received_at == received_at else 0
            received_at = end.received_at
        # Once it is to end it says nothing more, and `stop` has the time.
        if not self.is_last:
            _log.error("killed the plane's process", reason="it hangs")
            process.kill()

    def _pause_s(self) -> float:
        now_s = asyncio.get_running_loop().time()
        self._deaths.append(now_s)
        if len(self._deaths) == DEATHS_MAX and now_s - self._deaths[0] < DEATHS_WITHIN_S:
            return self._backoff.next_s()
        self._backoff.reset()
        return 0.0


async def _end_of(process: subprocess.Popen[bytes], timeout_s: float | None = None) -> int | None:
    """The exit code, once it has ended; None: it has not in time. A thread that waited would hold up this process's exit."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while process.poll() is None:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(POLL_S)
    return process.returncode
