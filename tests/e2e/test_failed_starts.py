"""A daemon that cannot start says why in one line, whatever step fails, and leaves no traceback."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

#: Nobody listens there: port 1 is reserved.
NOWHERE = "pulsar://127.0.0.1:1"
ENDS_S = 60.0

Fault = Callable[[Path], Iterator[dict[str, str]]]


def log_is_written(folder: Path) -> Iterator[dict[str, str]]:
    lock = folder / "log" / "b1" / ".lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield {}


def port_is_taken(folder: Path) -> Iterator[dict[str, str]]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield {"HTTP__LISTEN": f"127.0.0.1:{taken.getsockname()[1]}"}


def socket_is_a_file(folder: Path) -> Iterator[dict[str, str]]:
    yield {"HTTP__UNIX_SOCKET": file_in(folder)}


def host_is_unknown(folder: Path) -> Iterator[dict[str, str]]:
    yield {"HTTP__PROBE_LISTEN": "no.such.host.invalid:7700"}


def certificate_is_none(folder: Path) -> Iterator[dict[str, str]]:
    yield {"HTTP__TLS_CERT": file_in(folder), "HTTP__TLS_KEY": file_in(folder)}


def tokens_are_a_folder(folder: Path) -> Iterator[dict[str, str]]:
    yield {"HTTP__TOKENS_FILE": str(folder)}


def groups_are_empty(folder: Path) -> Iterator[dict[str, str]]:
    yield {"POLICIES__FILE": file_in(folder)}


def token_for_pulsar_is_missing(folder: Path) -> Iterator[dict[str, str]]:
    yield {"EXCHANGE__TOKEN_FILE": str(folder / "none")}


def embedded_folder_is_a_file(folder: Path) -> Iterator[dict[str, str]]:
    yield {"EXCHANGE__URL": "embedded", "EXCHANGE__EMBEDDED_DIR": file_in(folder)}


def interceptor_is_missing(folder: Path) -> Iterator[dict[str, str]]:
    yield {"LOG__BROKERENTRYMETADATAINTERCEPTORS": '["no.such"]'}


def tier_is_none(folder: Path) -> Iterator[dict[str, str]]:
    yield {"LOG__TIER_URL": "ftp://host"}


def tier_is_unknown_to_a_folder_that_is_a_file(folder: Path) -> Iterator[dict[str, str]]:
    yield {"LOG__TIER_URL": str(folder / "tier"), "LOG__DIR": file_in(folder)}


FAULTS: tuple[Fault, ...] = (
    log_is_written,
    port_is_taken,
    socket_is_a_file,
    host_is_unknown,
    certificate_is_none,
    tokens_are_a_folder,
    groups_are_empty,
    token_for_pulsar_is_missing,
    embedded_folder_is_a_file,
    interceptor_is_missing,
    tier_is_none,
    tier_is_unknown_to_a_folder_that_is_a_file,
)


def file_in(folder: Path) -> str:
    file = folder / "file"
    file.touch(mode=0o600)
    return str(file)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_start_that_fails_ends_in_one_line(fault: Fault, tmp_path: Path) -> None:
    with contextmanager(fault)(tmp_path) as settings:
        environment = {
            **os.environ,
            "RGD_HTTP__LISTEN": "127.0.0.1:0",
            "RGD_EXCHANGE__URL": NOWHERE,
            "RGD_LOG__DIR": str(tmp_path / "log"),
            **{f"RGD_{key}": value for key, value in settings.items()},
        }
        command = [sys.executable, "-m", "rgd", "serve", "--broker", "b1"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=ENDS_S, check=False
        )
    assert done.returncode in {1, 2}, done.stderr
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(told) == 1, done.stderr
    assert told[0].startswith("rgd: ")
