"""A daemon that cannot start says why in one line, whatever step fails, and leaves no traceback."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.lone_daemon import NOWHERE

pytestmark = pytest.mark.e2e

ENDS_S = 300.0


def file_in(folder: Path) -> str:
    file = folder / "file"
    file.touch(mode=0o600)
    return str(file)


def log_is_written(folder: Path, stack: ExitStack) -> dict[str, str]:
    lock = folder / "log" / "b1" / ".lock"
    lock.parent.mkdir(parents=True)
    fcntl.flock(stack.enter_context(lock.open("w")), fcntl.LOCK_EX)
    return {}


def port_is_taken(_: Path, stack: ExitStack) -> dict[str, str]:
    taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return {"HTTP__LISTEN": f"127.0.0.1:{taken.getsockname()[1]}"}


#: The settings with which it cannot start.
FAULTS: dict[str, Callable[[Path, ExitStack], dict[str, str]]] = {
    "log is written": log_is_written,
    "port is taken": port_is_taken,
    "host is unknown": lambda *_: {"HTTP__PROBE_LISTEN": "no.such.host.invalid:7700"},
    "tokens are a folder": lambda folder, _: {"HTTP__TOKENS_FILE": str(folder)},
    "groups are empty": lambda folder, _: {"POLICIES__FILE": file_in(folder)},
    "no token for Pulsar": lambda folder, _: {"EXCHANGE__TOKEN_FILE": str(folder / "none")},
    "embedded folder is a file": lambda folder, _: {
        "EXCHANGE__URL": "embedded",
        "EXCHANGE__EMBEDDED_DIR": file_in(folder),
    },
    "no such interceptor": lambda *_: {"LOG__BROKERENTRYMETADATAINTERCEPTORS": '["no.such"]'},
    "tier is none": lambda *_: {"LOG__TIER_URL": "ftp://host"},
    "log folder is a file": lambda folder, _: {
        "LOG__TIER_URL": str(folder / "tier"),
        "LOG__DIR": file_in(folder),
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_start_that_fails_ends_in_one_line(fault: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        settings = FAULTS[fault](tmp_path, stack)
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
