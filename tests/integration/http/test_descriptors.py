"""Few descriptors and many sockets: probes are answered, files open, and nothing spins.

The server is a process of its own, so that its limit is not this one's; it runs on uvloop, as served.
"""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from rgd.app.open_files import CONNECTIONS_MIN, FILES_RESERVED, connections_room, raise_open_files

pytestmark = pytest.mark.slow

MODULE = "tests.integration.http.crowded_server"
TIMEOUT_S = 60
LOOKS_MAX = 10_000


class Server:
    """The process, and what it says of itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.port = int(self._stdout.readline())

    def figures(self) -> dict[str, Any]:
        self._stdin.write("\n")
        self._stdin.flush()
        told: dict[str, Any] = json.loads(self._stdout.readline())
        return told

    def is_healthy(self) -> bool:
        return bool(self._ask("GET", "/healthz")["alive"])

    def grants(self) -> bool:
        return bool(self._ask("POST", "/v1/acquire", '{"group":"gold"}')["granted"])

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        with closing(client):
            client.request(method, path, body)
            return json.loads(client.getresponse().read())


@contextmanager
def server(soft: int, hard: int, connections_max: int = 0) -> Iterator[Server]:
    command = [sys.executable, "-m", MODULE, str(soft), str(hard), str(connections_max)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


@contextmanager
def crowd(port: int, count: int) -> Iterator[None]:
    raise_open_files()
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
        yield


def test_1300_idle_sockets_shut_out_neither_probes_nor_callers_nor_files() -> None:
    with server(1024, 1024) as running, crowd(running.port, 1300):
        assert running.is_healthy()
        assert running.grants()
        assert running.figures() == {"errors": 0, "can_open": FILES_RESERVED // 2}


def test_where_descriptors_run_out_all_the_same_the_server_comes_back() -> None:
    with server(64, 64, connections_max=10_000) as running:
        idle = running.figures()["can_open"]
        with crowd(running.port, 200):
            # Whatever is told of it is told a bounded number of times.
            assert running.figures()["errors"] < 200
        # While the crowd's sockets are still being closed, libuv resets whoever comes: so not before.
        # Each look lets the server's loop turn; two in a row mean that nobody is left in its queue.
        free = 0
        for _ in range(LOOKS_MAX):
            free = free + 1 if running.figures()["can_open"] >= idle else 0
            if free == 2:
                break
        assert free == 2, f"descriptors were still held after {LOOKS_MAX} looks"
        assert running.is_healthy()


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    with server(100, 2000) as running, crowd(running.port, 300):
        assert running.grants()
        assert running.figures()["can_open"] == FILES_RESERVED // 2


@pytest.mark.parametrize(
    ("files", "shards", "most"),
    [
        (1024, 1, 608),
        (1024, 16, 384),
        (1024, 64, CONNECTIONS_MIN),
        (64, 1, CONNECTIONS_MIN),
        (1 << 20, 1, (1 << 20) - 416),
    ],
)
def test_connections_leave_room_for_everything_else(files: int, shards: int, most: int) -> None:
    assert connections_room(files, shards) == most
