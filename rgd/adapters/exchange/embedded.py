"""The embedded broker: one pulsar-lite for all daemons of a machine that name the same folder.

Law: while at least one of them supervises, a broker runs on the folder, and on the same port as long
as any does, so all clients reconnect by themselves. Exactly one daemon owns it: the one that
holds the folder's lock. When the owner stops, in an orderly way or not, another daemon takes over, and the
outage lasts as long as a restart.
How: `ensure` starts the broker or joins a running one and returns its URL; `supervise` restarts it
when it dies (if we own it) or waits for the lock (if another does), until `stop`. The exchange over it
is simply a `PulsarExchange` on that URL.
The folder's files are in `embedded_folder`, the process in `embedded_process`.
"""

import asyncio
import logging
import math
from contextlib import suppress
from pathlib import Path
from typing import Final

from rgd.adapters.exchange.embedded_folder import BrokerRecord, EmbeddedFolder
from rgd.adapters.exchange.embedded_process import (
    LOOPBACK,
    READY_TIMEOUT_S,
    BrokerProcess,
    accepts,
    end_orphan,
    find_binary,
    is_port_free,
)
from rgd.backoff import Backoff
from rgd.errors import RgdError
from rgd.ports.exchange import ExchangeDown

_log: Final = logging.getLogger("rgd.embedded")

#: Time between two checks of the broker, or of its owner.
WATCH_S: Final = 0.05
#: A port may be taken between our check and the broker's bind; then others are tried.
PORT_ATTEMPTS_MAX: Final = 20
#: The first and the longest pause before a restart.
PAUSE_S_FIRST: Final = 0.05
PAUSE_S_MAX: Final = 5.0
#: After a broker that ran this long the pauses begin anew.
STEADY_S: Final = 10.0
#: How long joining waits for an owner that is starting the broker.
JOIN_TIMEOUT_S: Final = 2 * READY_TIMEOUT_S


class EmbeddedBroker:
    """This daemon's part in the broker of a folder.

    Args:
        folder: the broker's data, configuration and log; the same one for all daemons that are to
            share it, on a local file system.
        package: where the binary comes from.
    """

    def __init__(self, folder: Path, *, package: str = "pulsar_lite") -> None:
        self._folder = EmbeddedFolder(folder)
        self._package = package
        self._port: int | None = None
        self._process: BrokerProcess | None = None
        self._started_at_s = math.inf
        self._backoff = Backoff.with_own_dice(first_s=PAUSE_S_FIRST, pause_s_max=PAUSE_S_MAX)
        self._stopped = asyncio.Event()
        self._changing = asyncio.Lock()  # starting and stopping exclude one another

    @property
    def url(self) -> str:
        """The broker's URL; constant after `ensure`."""
        assert self._port is not None, "ensure() comes first"
        return f"pulsar://{LOOPBACK}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The broker's process, if it is ours and alive."""
        if self._process is None or self._process.has_ended():
            return None
        return self._process.pid

    async def ensure(self) -> str:
        """Start the broker, or join the one that another daemon runs; returns its URL. Idempotent.

        Raises:
            ConfigError: there is no binary on this machine; the message says what to do.
            ExchangeDown: it does not start; the message has the end of its log.
        """
        find_binary(self._package)  # a daemon that joins may take over later
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_S), self._changing:
                while not await self._start_or_join():  # noqa: ASYNC110 - it is another process that starts
                    await asyncio.sleep(WATCH_S)
        except BaseException as exc:
            await self._release()
            if isinstance(exc, TimeoutError):
                raise ExchangeDown(
                    f"another daemon owns {self._folder.path} and its broker does not come up; "
                    f"see {self._folder.log}, or name another folder"
                ) from exc
            raise
        return self.url

    async def supervise(self) -> None:
        """Keep a broker running until `stop`; faults are logged and tried again."""
        last_fault = ""
        while not self._stopped.is_set():
            try:
                await self._give_up_lost_folder()
                if self._folder.try_lock() and self.pid is None:
                    await self._restart()
            except (RgdError, OSError) as exc:
                # Retried for ever: a permanent fault is logged once.
                if str(exc) != last_fault:
                    _log.warning("the embedded broker does not start: %s", exc)
                last_fault = str(exc)
            await self._pause(WATCH_S)

    async def stop(self) -> None:
        """End our part: our broker stops, and another daemon may start it again. Idempotent.

        Cancel `supervise` first, or wait for the start that it may be in the middle of.
        """
        self._stopped.set()
        async with self._changing:
            await self._release()

    async def _give_up_lost_folder(self) -> None:
        """Give the broker up if its folder is gone, because another daemon may own the new folder."""
        if not self._folder.is_lock_gone():
            return
        _log.warning(
            "the folder %s of the embedded broker was removed or replaced; starting it again in a new one",
            self._folder.path,
        )
        async with self._changing:
            await self._release(has_folder=False)

    async def _start_or_join(self) -> bool:
        if not self._folder.try_lock():
            return await self._join()
        if self.pid is None:
            await self._start_somewhere()
        return True

    async def _join(self) -> bool:
        record = self._folder.read_record()
        if record is None or not record.is_ready or not await accepts(record.port):
            return False
        if self._folder.read_record() != record:
            return False  # the owner changed during the check, so another process may have answered
        self._port = record.port
        return True

    async def _start_somewhere(self) -> None:
        """Start on the folder's own port, or on another one if another process has taken it."""
        await end_orphan(self._folder)
        attempts = 0
        for port in self._folder.ports():
            if not is_port_free(port):
                continue
            attempts += 1
            try:
                await self._start(port)
            except ExchangeDown:
                if is_port_free(port) or attempts == PORT_ATTEMPTS_MAX:
                    raise  # the port was not the reason
            else:
                return
        raise ExchangeDown(f"no free port for the embedded broker of {self._folder.path}")

    async def _start(self, port: int) -> None:
        process = BrokerProcess(self._folder, find_binary(self._package), port)
        self._process = process
        self._folder.write_record(BrokerRecord(port, process.pid, is_ready=False))
        try:
            await process.wait_until_ready()
        except BaseException:
            await process.stop()
            raise
        self._port = port
        self._started_at_s = asyncio.get_running_loop().time()
        self._folder.write_record(BrokerRecord(port, process.pid, is_ready=True))

    async def _restart(self) -> None:
        """Restart it on its port after the current pause."""
        assert self._port is not None, "ensure() comes first"
        if asyncio.get_running_loop().time() - self._started_at_s >= STEADY_S:
            self._backoff.reset()
        await self._pause(self._backoff.next_s())
        async with self._changing:
            if self._stopped.is_set():
                return
            self._started_at_s = math.inf
            _log.warning("the embedded broker is gone; starting it again on port %d", self._port)
            await end_orphan(self._folder)
            await self._start(self._port)

    async def _release(self, *, has_folder: bool = True) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.stop()
            if self._port is not None and has_folder and process.has_ended():
                # On a full disk the old record stays; the lock is given up in every case.
                with suppress(OSError):
                    self._folder.write_record(BrokerRecord(self._port, 0, is_ready=False))
        self._folder.unlock()

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._stopped.wait()
        except TimeoutError:
            return
