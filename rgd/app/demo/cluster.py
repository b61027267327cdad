"""Runs the demo's daemons, each a process of its own, and a load on each.

Law: whatever happens, no process outlives the demo (where it is killed: on Linux); a process that ends too
early is an error with the end of what it said.

The daemons are started as a person would start them, with `rgd serve`; the
exchange is an embedded broker that this process runs.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.load import Load
from rgd.app.demo.plan import BROKERS, GROUP, NAMESPACE, QUOTA
from rgd.app.process import foreseen
from rgd.children import dying_with_parent
from rgd.errors import RgdError

START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 60.0
#: How much of what a daemon said is told where it does not start.
SAID_CHARS_MAX: Final = 1000

_GROUPS: Final = f"""\
groups:
  {GROUP}: {{publish: {{messages: {QUOTA:g}}}}}
attach:
  namespaces: {{{"/".join(NAMESPACE)}: {GROUP}}}
"""


class DemoFailed(RgdError):
    """A process of the demo did not do what it should; the message says which."""


class Daemon:
    """One `rgd serve`.

    Args:
        name: its broker's name.
        folder: has `groups.yaml`, where there is one; takes the logs.
        exchange: a Pulsar URL.
        environ: settings beside the options.
        port: where it listens; 0: on a free one.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        exchange: str,
        environ: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.name = name
        self._port = port
        self.base = ""
        self._folder = folder
        self._exchange = exchange
        self._environ = os.environ | (environ or {})
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        errors = self._folder / f"{self.name}.log"
        groups = self._folder / "groups.yaml"
        with errors.open("ab") as sink:
            command = [
                *(sys.executable, "-m", "rgd", "serve", "--broker", self.name),
                *("--listen", f"127.0.0.1:{self._port}", "--exchange", self._exchange),
                *(("--groups", str(groups)) if groups.exists() else ()),
                *("--log-dir", str(self._folder / "log")),
            ]
            self._process = await asyncio.create_subprocess_exec(
                *dying_with_parent(command, by=signal.SIGKILL),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                env=self._environ,
                # Linux shares the processors among sessions first, where nothing else says how (sched_autogroup).
                start_new_session=sys.platform == "linux",
            )
        assert self._process.stdout is not None
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await self._process.stdout.readline()
        fields = dict(word.split("=", 1) for word in line.decode().split() if "=" in word)
        if "listening" not in fields:
            said = errors.read_text(errors="replace")[-SAID_CHARS_MAX:]
            raise DemoFailed(f"{self.name} does not start; {errors} ends with\n{said}")
        self.base = fields["listening"]

    @property
    def pid(self) -> int:
        """Its process, once it was started."""
        assert self._process is not None
        return self._process.pid

    async def wait(self) -> int:
        """Wait until it has ended by itself; the exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL: it says no goodbye."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> int | None:
        """SIGTERM, and SIGKILL if that does not help; the exit code."""
        if self._process is None:
            return None
        if self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._process.wait()
            except TimeoutError:
                await self.kill()
        return self._process.returncode


class Cluster:
    """An exchange, three daemons and a load on each; an async context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._embedded = EmbeddedBroker(folder / "exchange")
        self.daemons: list[Daemon] = []
        self.loads = [Load(seed) for seed in range(len(BROKERS))]

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "groups.yaml").write_text(_GROUPS)
        try:
            url = await self._embedded.ensure()
            self.daemons = [Daemon(name, self.folder, url) for name in BROKERS]
            async with asyncio.TaskGroup() as tasks:
                for daemon in self.daemons:
                    tasks.create_task(daemon.start())
            for daemon, load in zip(self.daemons, self.loads, strict=True):
                load.start(daemon.base)
        except BaseExceptionGroup as group:
            await self.__aexit__()
            raise foreseen(group) from group
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """End every process, the exchange last."""
        for load in self.loads:
            await load.stop()
        await asyncio.gather(*(daemon.stop() for daemon in self.daemons))
        await self._embedded.stop()

    async def wait_until_live(self) -> None:
        """Return once every daemon knows its shares."""
        async with asyncio.timeout(START_TIMEOUT_S):
            for daemon in self.daemons:
                async with DaemonClient(daemon.base) as client:
                    while not await client.is_ready():  # noqa: ASYNC110 - another process gets ready
                        await asyncio.sleep(0.05)
