"""Tiers for tests: a folder, and a bucket on a real S3 protocol server (moto's) in this process.

Law: each test gets a place of its own. The server is started once in a run; a test sees it through the
environment alone, as the daemon does. Faults of its network are made by `Gate`, which stands before it.
"""

import http.client
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Longest wait for a connection's next bytes.
TIMEOUT_S = 60
PIECE_BYTES_MAX = 1 << 16


class S3Server:
    """Moto's server on a free port of this machine."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer  # Flask and botocore, for those who need them

        self._server: Any = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        self.port: int = self._server.get_host_and_port()[1]
        self._buckets = 0

    def stop(self) -> None:
        self._server.stop()

    def make_bucket(self) -> str:
        self._buckets += 1
        name = f"bucket-{self._buckets}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        connection.request("PUT", f"/{name}", headers={"Host": f"127.0.0.1:{self.port}"})
        assert connection.getresponse().status == 200
        connection.close()
        return name


class Gate:
    """A TCP listener before a server: open, closed (connections are cut) or stalled."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.is_open = True
        #: Bytes of a client that are let through on one connection before it is cut; None: all.
        self.cut_after: int | None = None
        #: Whether bytes of clients are read and passed to nobody.
        self.is_stalled = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target_port), TIMEOUT_S)
            for one, other, is_client in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pass, args=(one, other, is_client), daemon=True
                ).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_client: bool) -> None:
        passed = 0
        try:
            while (data := source.recv(PIECE_BYTES_MAX)) and self.is_open:
                passed += len(data)
                if is_client and self.is_stalled:
                    continue
                if is_client and self.cut_after is not None and passed > self.cut_after:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            one.close()


@contextmanager
def s3_environment(monkeypatch: pytest.MonkeyPatch, port: int) -> Iterator[None]:
    """What the environment says to every S3 client."""
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_REGION", "us-east-1")
        yield


def running_s3() -> Generator[S3Server]:
    """The one server of a run."""
    server = S3Server()
    yield server
    server.stop()
