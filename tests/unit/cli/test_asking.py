"""How commands reach a daemon: in the clear, over TLS, with a certificate of their own, by a unix socket; and `rgd probe`."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rgd.adapters.http.tokens import Tokens
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.answers import Health
from rgd.ports.door import Scope, digest_of
from rgd.ports.metrics import Sample
from tests.support.certificates import make_certificate
from tests.support.running_daemon import running_daemon
from tests.unit.cli.conftest import Rgd

COMMANDS = [
    ("groups", "list"),
    ("why", "acme/orders"),
    ("probe",),
    ("probe", "--ready"),
    ("top", "--once"),
    ("top", "--once", "--json"),
    ("doctor",),
]
SNAPSHOT = PolicySnapshot({"gold": Group("gold")})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["plain", "unix", "tls", "mtls"])
def reached(
    request: pytest.FixtureRequest, tmp_path: Path, certificate: tuple[Path, Path]
) -> Iterator[tuple[str, ...]]:
    """A daemon that can be reached in one way, and the options that do it."""
    cert, key = certificate
    http: dict[str, Any] = {}
    options: tuple[object, ...] = ()
    if request.param == "unix":
        http["unix_socket"] = tmp_path / "rgd.sock"
    elif request.param != "plain":
        http |= {"tls_cert": cert, "tls_key": key}
        options = ("--tls-ca", cert)
    if request.param == "mtls":
        http["tls_client_ca"] = cert
        options = (*options, "--tls-cert", cert, "--tls-key", key)
    with running_daemon(tmp_path, SNAPSHOT, **http) as daemon:
        url = f"unix://{http['unix_socket']}" if "unix_socket" in http else daemon.url
        yield ("--url", url, *map(str, options))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.slow
def test_commands_reach_a_daemon_in_every_way(
    rgd: Rgd, reached: tuple[str, ...], command: tuple[str, ...]
) -> None:
    outcome = rgd(*command, *reached)
    assert (outcome.code, outcome.err) == (0, "")


class Stranger(BaseHTTPRequestHandler):
    """What is no daemon: it answers everything with a page, or with a health of its own."""

    content: bytes

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.content)


@pytest.mark.parametrize(
    "content", [b"<!doctype html>\n\n", b'{"status":"UP"}', b'data: {"a":1}\n\n']
)
@pytest.mark.parametrize("command", [*COMMANDS, ("top", "--json")], ids=" ".join)
def test_who_answers_and_is_no_daemon_is_reported(
    rgd: Rgd, command: tuple[str, ...], content: bytes
) -> None:
    page = type("Page", (Stranger,), {"content": content})
    with ThreadingHTTPServer(("127.0.0.1", 0), page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        outcome = rgd(*command, "--url", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert outcome.code == 1
    assert "no daemon answers" in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def test_top_goes_on_while_a_plane_is_replaced(rgd: Rgd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgd.cli.top.RETRY_S", 0)
    statuses = iter((200, 503, 200, 403))

    class Replaced(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(next(statuses))
            self.end_headers()
            self.wfile.write(b'data: {"round_s":1,"unix_ms":0,"broker":"b"}\n\n')

    with ThreadingHTTPServer(("127.0.0.1", 0), Replaced) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        outcome = rgd("top", "--json", "--url", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    is_stale = ["verdict" in line for line in outcome.out.splitlines()]
    assert (outcome.code, is_stale) == (1, [False, True, True, False, True])


def test_who_is_not_trusted_is_told_what_to_give(
    rgd: Rgd, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    with running_daemon(tmp_path, SNAPSHOT, tls_cert=cert, tls_key=key) as daemon:
        outcome = rgd("probe", "--url", daemon.url)
    assert outcome.code == 1
    assert "--tls-ca" in outcome.err


@pytest.mark.parametrize(
    "options", [("--tls-cert", "a.pem"), ("--tls-ca", "a.pem"), ("--tls-key", "a.pem")]
)
def test_certificates_that_cannot_be_used_are_2(rgd: Rgd, options: tuple[str, ...]) -> None:
    outcome = rgd("probe", *options)
    assert outcome.code == 2
    assert options[0] in outcome.err


def test_a_daemon_that_is_not_ready_is_alive(rgd: Rgd, tmp_path: Path) -> None:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        daemon.daemon.drain()
        assert rgd("probe", "--url", daemon.url).code == 0
        outcome = rgd("probe", "--ready", "--url", daemon.url)
    assert (outcome.code, outcome.err) == (1, "rgd: not ready: draining\n")
    assert rgd("probe", "--url", daemon.url).code == 1


def test_probes_need_no_certificate_at_their_own_address_and_nothing_else_is_answered_there(
    rgd: Rgd, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    http: dict[str, Any] = {"tls_cert": cert, "tls_key": key, "tls_client_ca": cert}
    with running_daemon(tmp_path, SNAPSHOT, probe_address=("127.0.0.1", 0), **http) as daemon:
        assert rgd("probe", "--ready", "--url", daemon.probe_url).code == 0
        refused = rgd("groups", "list", "--url", daemon.probe_url)
        counted = Sample("rgd_http_connections_refused_total", ("connections_max",), 1)
        assert counted in daemon.server.samples()
    assert refused.code == 1
    assert "only probes are answered" in refused.err


def test_reasons_are_for_those_who_may_read(
    rgd: Rgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens({digest_of("look"): frozenset({Scope.READ})})
    with running_daemon(tmp_path, SNAPSHOT, tokens=tokens) as daemon:
        health = Health(ready=True, degraded=("usage log: /secret/path: no space",))
        daemon.daemon.health = lambda: health  # type: ignore[method-assign]
        told = rgd("probe", "--ready", "--url", daemon.url)
        monkeypatch.setenv("RGD_TOKEN", "look")
        whole = rgd("probe", "--ready", "--url", daemon.url)
    assert told.out == "ready; usage log\n"
    assert whole.out == "ready; usage log: /secret/path: no space\n"
