"""The broker's binary as a process: find it, start it so that it dies with us, await it, stop it.

Law: on Linux the broker never outlives the daemon that started it, because the kernel
sends it a signal (parent-death signal). On other systems it may, and the next owner of its folder stops it
(`end_orphan`). It listens only on 127.0.0.1.
The binary is started directly, because the package's own `start_broker` takes no configuration and would open
port 8080 on all interfaces.
`rgd.adapters.exchange.embedded` starts it, and reacts when it dies.
"""

import asyncio
import contextlib
import importlib.util
import os
import platform
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.children import dying_with_parent
from rgd.errors import ConfigError, Fault
from rgd.ports.exchange import ExchangeDown

LOOPBACK: Final = "127.0.0.1"
#: Longest time until a broker listens; usually it takes 0.1 s.
READY_TIMEOUT_S: Final = 10.0
#: Longest time from SIGTERM to its end; usually it ends at once.
STOP_TIMEOUT_S: Final = 3.0
POLL_S: Final = 0.01

_IS_LINUX: Final = platform.system() == "Linux"

#: The platforms of the pulsar-lite wheel: (system, machine).
_BUILDS: Final = {("Linux", "x86_64"), ("Darwin", "arm64")}


def find_binary(package: str = "pulsar_lite") -> Path:
    """The broker's binary inside its installed package.

    Raises:
        ConfigError: it is not installed, or there is none for this platform.
    """
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        binary = Path(folder) / "bin" / "pulsar-lite"
        if binary.is_file():
            return binary
    here = (platform.system(), platform.machine())
    if here in _BUILDS:
        remedy = "is not installed: pip install '.[embedded]' (rgd's source), or set exchange.url"
    else:
        remedy = (
            f"has no build for {' '.join(here)}: set exchange.url to a Pulsar, pulsar://HOST:PORT"
        )
    raise ConfigError(Fault("settings", "exchange.url", f"the embedded broker {remedy}"))


class BrokerProcess:
    """One run of the binary on a folder and a port.

    Call it from the thread that runs the event loop, and let that be one that stays: for the kernel
    the parent whose death ends the broker is the thread that started it.
    """

    def __init__(self, folder: EmbeddedFolder, binary: Path, port: int) -> None:
        folder.write_config(port)
        folder.rotate_log()
        # Not "warn": at each policy written it warns of every reader that ever left, one line each.
        command = [str(binary), "--config", str(folder.config), "--log-level", "error"]
        command += ["--addr", f"{LOOPBACK}:{port}", "--db-path", str(folder.database)]
        environment = {name: value for name, value in os.environ.items() if name != "RUST_LOG"}
        environment["RUST_BACKTRACE"] = "0"  # the log's end is shown to people
        with folder.log.open("ab") as log:
            self._log_offset = log.tell()
            self._process = subprocess.Popen(
                dying_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                env=environment,
                # A Ctrl-C on the terminal is for the daemon, which says goodbye and then stops this.
                start_new_session=True,
                umask=0o077,  # what it keeps is for its user
            )
        self.pid = self._process.pid
        self._folder = folder
        self._port = port

    def has_ended(self) -> bool:
        """Whether it has ended, for any reason."""
        return self._process.poll() is not None

    async def wait_until_ready(self) -> None:
        """Return once exactly this process listens on its port.

        Raises:
            ExchangeDown: it ended, or does not listen in time; the message has the end of its log.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_TIMEOUT_S):
                while not self.has_ended():
                    if await accepts(self._port) and _is_listening(self.pid, self._port):
                        return
                    await asyncio.sleep(POLL_S)
        ended = self._process.poll()
        what = "does not listen" if ended is None else f"ended with {ended}"
        raise ExchangeDown(
            f"the embedded broker {what} on {LOOPBACK}:{self._port}; is {self._folder.path} readable "
            f"and writable, with room? {self._folder.log} says:\n{self._folder.log_since(self._log_offset)}"
        )

    async def stop(self) -> None:
        """End it: SIGTERM, and after STOP_TIMEOUT_S SIGKILL. Idempotent."""
        if not self.has_ended():
            self._process.terminate()
        if not await _comes_true(self.has_ended):
            self._process.kill()
            # Where a disk hangs it does not end, and the gate answers on this loop.
            await _comes_true(self.has_ended)


async def end_orphan(folder: EmbeddedFolder) -> None:
    """Stop the broker of the folder's last owner, if it outlived the owner; only the current owner may.

    Raises:
        ExchangeDown: it cannot be ended.
    """
    record = folder.read_record()
    if record is None or record.broker_pid <= 0:
        return
    pid = record.broker_pid
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if not _runs_on(folder, pid):
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)
        await _comes_true(lambda: not _runs_on(folder, pid))
    if _runs_on(folder, pid):
        raise ExchangeDown(
            f"an embedded broker of an earlier daemon, process {pid}, cannot be ended; end it, "
            "or use another folder"
        )
    # It has lost its name before it lets go of its port and its database.
    await _comes_true(lambda: not _is_ending(pid))


def is_port_free(port: int) -> bool:
    """Whether the broker could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the broker does
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


async def accepts(port: int) -> bool:
    """Whether anything accepts a connection there."""
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def _comes_true(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, for STOP_TIMEOUT_S at most; returns whether it holds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOP_TIMEOUT_S):
            while not condition():  # noqa: ASYNC110 - the end of a foreign process is no event of ours
                await asyncio.sleep(POLL_S)
    return condition()


def _runs_on(folder: EmbeddedFolder, pid: int) -> bool:
    """Whether a process is a broker on this folder, and not another program with its old pid."""
    return os.fsencode(folder.config) in _command_line(pid)


def _is_ending(pid: int) -> bool:
    """Whether a process without a name still holds files; only Linux shows this.

    Its first thread may be a zombie while its other threads, which share the files, are still ending.
    """
    process = Path(f"/proc/{pid}")
    try:
        threads = len(list((process / "task").iterdir()))
        state = (process / "stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return not _command_line(pid) and (threads > 1 or state not in b"ZX")


def _command_line(pid: int) -> bytes:
    if _IS_LINUX:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    command = ["/bin/ps", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, check=False, timeout=5).stdout


def _is_listening(pid: int, port: int) -> bool:
    """Whether the listener on the port is this process, and not one that was faster.

    Only Linux shows this. On other systems it is assumed, because the broker ends at once if it cannot listen.
    """
    if not _IS_LINUX:
        return True
    address = f"0100007F:{port:04X}"
    listening = {
        f"socket:[{words[9]}]"
        for words in map(str.split, Path("/proc/net/tcp").read_text().splitlines())
        if words[1] == address and words[3] == "0A"
    }
    with contextlib.suppress(OSError):
        return any(str(fd.readlink()) in listening for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False
