"""`rgd doctor`: it names what is wrong and what to do, in broken set-ups and with broken daemons, and ends soon.

Not covered: what only a Pulsar with tokens can refuse (tests/integration/exchange/test_authentication.py).
"""

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.usagelog.files import FolderLock, log_folder
from rgd.app.clock import SystemClock
from rgd.app.doctor.files import validities
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support import components
from tests.support.certificates import make_certificate
from tests.support.running_daemon import BROKER, running_daemon
from tests.support.served import served
from tests.unit.cli.conftest import Outcome, Rgd

DAYS_MS = 86_400_000
GROUPS = "groups: {gold: {publish: {messages: 100}}}\n"


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing is wrong, with everything that a daemon may be given."""
    cert, key = make_certificate(tmp_path, days=60)
    (tmp_path / "groups.yaml").write_text(GROUPS)
    tokens = tmp_path / "tokens.yaml"
    tokens.touch(0o600)
    tokens.write_text("- {name: us, token: a-token-of-some-length, scopes: [query]}\n")
    (tmp_path / "tier").mkdir()
    settings = {
        "HTTP__LISTEN": "127.0.0.1:0",
        "HTTP__TOKENS_FILE": tokens,
        "HTTP__TLS_CERT": cert,
        "HTTP__TLS_KEY": key,
        "HTTP__UNIX_SOCKET": tmp_path / "rgd.sock",
        "POLICIES__FILE": tmp_path / "groups.yaml",
        "LOG__DIR": tmp_path / "log",
        "LOG__TIER_URL": tmp_path / "tier",
        "EXCHANGE__EMBEDDED_DIR": tmp_path / "exchange",
        "BROKER__NAME": "b1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"RGD_{name}", str(value))
    return tmp_path


def findings(outcome: Outcome, state: str) -> list[str]:
    """What it says of this state, with the check."""
    found = json.loads(outcome.out)
    return [f"{one['check']}: {one['text']}" for one in found if one["state"] == state]


def test_a_sound_set_up_has_no_fault_and_nothing_is_left_behind(rgd: Rgd, sound: Path) -> None:
    components.embedded_broker()
    before = sorted(sound.rglob("*"))
    outcome = rgd("doctor", "--json")
    assert (outcome.code, findings(outcome, "fault")) == (0, [])
    assert any("certificates: http.tls_cert" in one for one in findings(outcome, "ok"))
    assert sorted(sound.rglob("*")) == before


def shift_clock(patch: pytest.MonkeyPatch, by_ms: int) -> None:
    here = SystemClock().unix_ms
    patch.setattr(SystemClock, "unix_ms", lambda _: here() + by_ms)


Broken = dict[str, object]


@contextmanager
def taken_port() -> Iterator[int]:
    """A port on which somebody listens who never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def port_is_taken(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    with taken_port() as port:
        yield {"HTTP__LISTEN": f"127.0.0.1:{port}"}


def socket_is_a_file(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    yield {"HTTP__UNIX_SOCKET": sound / "groups.yaml"}


def log_is_written(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    folder = log_folder(sound / "log", "b1")
    folder.mkdir(parents=True)
    lock = FolderLock(folder)
    lock.acquire()
    yield {}
    lock.release()


def groups_are_misspelt(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    (sound / "groups.yaml").write_text("groups:\n  gold: {publish: {mesages: 1}}\n")
    yield {}


def setting_is_misspelt(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    yield {"HTTP__LISTN": "127.0.0.1:0"}


def certificate_expired(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    # The certificate is of today, for 60 days.
    shift_clock(patch, 61 * DAYS_MS)
    yield {}


def key_does_not_fit(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    other = sound / "other"
    other.mkdir()
    yield {"HTTP__TLS_KEY": make_certificate(other)[1]}


def certificate_is_damaged(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    authority = sound / "ca.pem"
    authority.write_bytes(make_certificate(sound)[0].read_bytes().replace(b"MII", b"MI"))
    yield {"EXCHANGE__ADMIN_CA_FILE": authority}


def tokens_are_open_to_all(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    (sound / "tokens.yaml").chmod(0o644)
    yield {}


def token_for_pulsar_is_missing(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    yield {"EXCHANGE__URL": "pulsar://127.0.0.1:1", "EXCHANGE__TOKEN_FILE": sound / "none"}


def exchange_is_away(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    yield {"EXCHANGE__URL": "pulsar://127.0.0.1:1"}


def exchange_is_silent(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    with taken_port() as port:
        yield {"EXCHANGE__URL": f"pulsar://127.0.0.1:{port}"}


def admin_api_is_away(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    yield {"EXCHANGE__ADMIN_URL": "http://127.0.0.1:1"}


def tier_is_away(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"):
        patch.setenv(f"AWS_{name}", "testing")
    patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    yield {"LOG__TIER_URL": "s3://bucket/logs"}


def java_is_missing(sound: Path, patch: pytest.MonkeyPatch) -> Iterator[Broken]:
    patch.setenv("JAVA_HOME", str(sound))
    yield {}


Fault = Callable[[Path, pytest.MonkeyPatch], Iterator[Broken]]

#: Each fault, and what is said of it: the check, what is wrong, and what to do.
FAULTS: tuple[tuple[Fault, str, str, str], ...] = (
    (port_is_taken, "ports", "it is in use", "stop what listens there or choose another"),
    (socket_is_a_file, "ports", "there is a file that is no socket", "move it"),
    (log_is_written, "disk", "another rgd daemon", "its own broker.name or log.dir"),
    (groups_are_misspelt, "groups", "groups.yaml:2", "messages"),
    (setting_is_misspelt, "settings", "RGD_HTTP__LISTN", "RGD_HTTP__LISTEN"),
    (certificate_expired, "certificates", "expired on", "replace it"),
    (key_does_not_fit, "certificates", "key values mismatch", "expected a PEM certificate and its key"),
    (certificate_is_damaged, "certificates", "exchange.admin_ca_file", "expected PEM certificates"),
    (tokens_are_open_to_all, "tokens", "0644", "chmod"),
    (token_for_pulsar_is_missing, "tokens", "exchange.token_file", "expected a file that can be read"),
    (exchange_is_away, "exchange", "at pulsar://127.0.0.1:1: ", "check that a Pulsar broker listens there"),
    (exchange_is_silent, "exchange", "at pulsar://127.0.0.1:", "check that a Pulsar broker listens there"),
    (admin_api_is_away, "admin API", "cannot be reached", "check exchange.admin_url"),
    (tier_is_away, "tier", "cannot be reached", "check the place, AWS_ENDPOINT_URL and the credentials"),
    (java_is_missing, "java", "not a Java that runs", "install Java"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "check", "wrong", "remedy"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS]
)
def test_a_fault_and_its_remedy_are_named(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch,
    fault: Fault, check: str, wrong: str, remedy: str,
) -> None:  # fmt: skip
    with contextmanager(fault)(sound, monkeypatch) as settings:
        for name, value in settings.items():
            monkeypatch.setenv(f"RGD_{name}", str(value))
        outcome = rgd("doctor", "--json", *(["--report"] if check == "java" else []))
    assert outcome.code == 1
    told = findings(outcome, "fault")
    assert any(one.startswith(f"{check}: ") and wrong in one and remedy in one for one in told), (
        told
    )


@pytest.mark.parametrize("disk", ["small_disk", "read_only_folder"])
def test_a_disk_that_takes_nothing_is_named(
    rgd: Rgd, sound: Path, request: pytest.FixtureRequest, disk: str
) -> None:
    folder: Path = request.getfixturevalue(disk)
    if disk == "small_disk":
        (folder / "rest").write_bytes(bytes(os.statvfs(folder).f_bavail * 4096))
    outcome = rgd("doctor", "--json", "--log-dir", folder / "log")
    assert outcome.code == 1
    [told] = [one for one in findings(outcome, "fault") if one.startswith("disk: ")]
    assert f"log.dir: {folder} cannot be written" in told
    assert "name another folder" in told


@pytest.mark.slow
def test_a_check_that_hangs_ends_at_its_limit_and_stops_no_other(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    monkeypatch.setattr("rgd.app.doctor.findings.CHECK_S", 4.0)
    monkeypatch.setattr("rgd.app.doctor.files.load_groups", lambda _: hangs.wait())
    outcome = rgd("doctor")
    hangs.set()
    assert outcome.code == 1
    assert "fault    groups        no answer within 4 s: find what hangs" in outcome.out
    assert "ok       tokens" in outcome.out


def test_a_daemon_that_runs_is_judged_by_what_it_says(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Settings that name no broker are taken for those of the daemon that runs.
    monkeypatch.delenv("RGD_BROKER__NAME")
    socket = sound / "rgd.sock"
    with running_daemon(sound / "running", PolicySnapshot(), unix_socket=socket) as daemon:
        plain = rgd("doctor", "--json")
        assert (plain.code, findings(plain, "fault")) == (0, [])
        assert f"daemon: brokers, and when each was last heard: {BROKER} (0.0 s)" in findings(
            plain, "ok"
        )
        asks = ("doctor", "--json", "--url", daemon.url)
        [other] = findings(rgd(*asks, "--broker", "b2"), "fault")
        daemon.daemon.drain()
        drained = rgd(*asks)
    [told] = findings(drained, "fault")
    assert (drained.code, told) == (
        1,
        "daemon: it runs and is not ready: draining (docs/operations.md has the remedies)",
    )
    assert f"is of broker {BROKER}" in other
    away = rgd(*asks)
    assert away.code == 1
    [told] = findings(away, "fault")
    assert "start one with `rgd serve`" in told
    # What else may be the cause is looked at.
    assert findings(away, "ok")


@pytest.mark.parametrize("is_apart", [False, True], ids=["https", "probes"])
def test_a_daemon_with_certificates_is_asked_without_options(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch, is_apart: bool
) -> None:
    """By its own certificate, which is of another name in a pod; or where probes need none."""
    for name in ("HTTP__UNIX_SOCKET", "BROKER__NAME"):
        monkeypatch.delenv(f"RGD_{name}")
    cert, key = make_certificate(sound, days=60, name="DNS:rgd.rgd.svc")
    http: dict[str, Any] = {"tls_cert": cert, "tls_key": key}
    if is_apart:
        http["probe_address"] = ("127.0.0.1", 0)
    with running_daemon(sound / "running", PolicySnapshot(), **http) as daemon:
        setting, url = ("PROBE_LISTEN", daemon.probe_url) if is_apart else ("LISTEN", daemon.url)
        monkeypatch.setenv(f"RGD_HTTP__{setting}", url.partition("://")[2])
        outcome = rgd("doctor", "--json")
    assert (outcome.code, findings(outcome, "fault")) == (0, [])
    assert "daemon: it runs and is ready" in findings(outcome, "ok")
    warned = [one for one in findings(outcome, "warning") if "does not show its peers" in one]
    assert len(warned) == is_apart


def heard(rgd: Rgd, *asks: str) -> Outcome:
    """What it says as soon as a broker sent something while it listened, which a busy one may not."""
    while not re.search(r'"exchange", [^}]*broker-1', (outcome := rgd(*asks)).out):
        pass
    return outcome


@pytest.mark.embedded
@pytest.mark.slow
def test_members_of_the_exchange_tell_of_names_and_clocks(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components.embedded_broker()
    with served(sound, GROUPS, HTTP__TOKENS_FILE="", HTTP__TLS_CERT="", HTTP__TLS_KEY="", HTTP__UNIX_SOCKET="",
                LOG__TIER_URL="") as url:  # fmt: skip
        monkeypatch.setattr("rgd.app.doctor.exchange.OPEN_S", 60)
        monkeypatch.setenv("RGD_LOG__DIR", str(sound / "log-of-b2"))
        peers = heard(rgd, "doctor", "--json", "--broker", "b2")
        itself = rgd("doctor", "--json", "--broker", "broker-1", "--url", url)
        monkeypatch.setenv("RGD_LOG__DIR", str(sound / "log-of-b1"))
        same = heard(rgd, "doctor", "--json", "--broker", "broker-1")
        shift_clock(monkeypatch, 3_600_000)
        off = heard(rgd, "doctor", "--json", "--broker", "b2")
    assert (peers.code, itself.code, same.code, off.code) == (0, 0, 1, 1), peers.out + itself.out
    assert "exchange: other brokers report, and clocks agree: broker-1" in findings(peers, "ok")
    assert findings(same, "fault") == [
        "exchange: 1 daemons report as broker broker-1, expected 0: give each daemon its own broker.name"
    ]
    assert re.match(
        r"exchange: clocks differ from this machine's by \(seconds\) broker-1 -36\d\d; set the clocks by NTP ",
        findings(off, "fault")[0],
    )


def test_an_old_authority_may_stand_beside_the_new_one(
    rgd: Rgd, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities, other = sound / "ca.pem", sound / "other"
    other.mkdir()
    old, new = (make_certificate(other, days=days)[0].read_bytes() for days in (2, 90))
    authorities.write_bytes(old + new)
    monkeypatch.setenv("RGD_HTTP__TLS_CLIENT_CA", str(authorities))
    shift_clock(monkeypatch, 10 * DAYS_MS)
    outcome = rgd("doctor", "--json")
    assert findings(outcome, "fault") == []
    assert any("http.tls_client_ca: " in one for one in findings(outcome, "ok"))


@pytest.mark.parametrize("days", [2, 20_000])
def test_the_validity_of_a_certificate_is_read_whatever_its_form(tmp_path: Path, days: int) -> None:
    """Until 2049 years have two digits, later four."""
    cert, _ = make_certificate(tmp_path, days=days)
    [(begin, end)] = validities(cert.read_bytes())
    assert (end - begin).days == days
