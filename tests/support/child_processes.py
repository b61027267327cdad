"""Ports and processes of servers that tests start: none outlives the process that started it.

On Linux the kernel sees to it, however that process ends; elsewhere a SIGKILL of it leaves them.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rgd.children import dying_with_parent

#: Below the ephemeral ranges of Linux and macOS: while Pulsar is down between `kill` and `restart`,
#: the kernel must not give its port to anybody's outgoing connection.
_PORTS = range(20_000, 32_000)

#: The kernel's "parent" is the thread that started the process, so a test's own short-lived thread
#: must not be it: this one lives as long as the interpreter.
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pulsar-launcher")


def free_ports(count: int) -> list[int]:
    """Different ports on which nothing listens on the loopback now, none of them ephemeral."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(_PORTS, k=100 + count):
            if len(ports) == count:
                break
            listener = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                ports.append(port)
    if len(ports) < count:
        raise OSError(f"no {count} free ports in {_PORTS}")
    return ports


def start_dying_with_parent(
    command: Sequence[str | Path], *, environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a program as the leader of its own process group, its output appended to a log.

    On Linux the kernel kills it when this process ends, whichever thread called.
    """
    words = dying_with_parent([str(word) for word in command], by=signal.SIGKILL)
    with log.open("ab") as output:
        starting = _launcher.submit(
            lambda: subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
        return starting.result()


def end(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """End such a program in order, with SIGTERM; its whole group with SIGKILL if it has not ended within the time."""
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
