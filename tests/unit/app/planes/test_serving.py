"""How long an end may take. Not covered: what is done in it, which tests/e2e/test_planes.py has."""

import asyncio
import errno
import subprocess
import sys

import pytest

from rgd.adapters.http.front import Front
from rgd.app.door_wiring import http_settings
from rgd.app.planes.serving import Serving
from rgd.config.settings import Settings
from rgd.core.units import NS_PER_S, Nanos

#: A daemon whose embedded broker does not come, and which is told to end meanwhile.
WAITS = """
import asyncio, os, signal
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.app.planes.serving import serve
from rgd.config.settings import Settings

async def ensure(_broker):
    os.kill(os.getpid(), signal.SIGTERM)
    return await asyncio.Future()

EmbeddedBroker.ensure = ensure
serve(Settings(), say=print)
"""


@pytest.mark.parametrize("timeout_ms", [100, 1_000, 10_000, 600_000])
async def test_the_parts_of_an_end_take_no_longer_together_than_is_said(
    monkeypatch: pytest.MonkeyPatch, timeout_ms: int
) -> None:
    settings, timeout_s = Settings(shutdown_timeout_ms=timeout_ms), timeout_ms / 1000
    serving = Serving(settings, "pulsar://127.0.0.1:1", asyncio.Event(), insecure=False)
    passed_s = 5.0
    told: list[tuple[object, ...]] = []

    async def take(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds

    monkeypatch.setattr(serving, "now", lambda: Nanos(int(passed_s * NS_PER_S)))
    monkeypatch.setattr(serving, "note", lambda *said: told.append(said))
    # Each takes all the time that it is given.
    drain_s = http_settings(settings, insecure=False).close_timeout_s
    monkeypatch.setattr(serving.front, "close", lambda: take(drain_s))
    monkeypatch.setattr(serving.runner, "stop", take)
    await serving.stop()
    assert passed_s - 5.0 < timeout_s
    assert told == [("drain",), ("stop", pytest.approx(timeout_s / 2))]
    assert serving.left_s() == pytest.approx(timeout_s - (passed_s - 5.0))


async def test_a_start_does_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    serving = Serving(Settings(), "pulsar://127.0.0.1:1", asyncio.Event(), insecure=False)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(serving.front, "open", lambda: asyncio.sleep(0))
    monkeypatch.setattr(Front, "port", 1)
    serving.open_doors(())
    serving.up.set()
    await serving.open(say)
    assert len(said) == 1


def test_a_daemon_that_waits_for_the_embedded_broker_ends_as_soon_as_it_is_told_to() -> None:
    # A process of its own, because `serve` sets signals and logs for a whole process.
    ran = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
