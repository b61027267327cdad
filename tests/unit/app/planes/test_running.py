"""What a plane is started with, and when one that says nothing is killed. Not covered: tests/e2e/test_planes.py."""

import asyncio
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, cast

import pytest

from rgd.app.containment import InternalErrors
from rgd.app.planes.gate_end import GateEnd
from rgd.app.planes.running import SILENT_LOOKS, STARTING_LOOKS, PlaneRunner
from rgd.core.units import Nanos
from tests.unit.app.planes.test_gate_process import gate_process


class Process:
    """A process that may be killed."""

    kills, returncode = 0, None

    def kill(self) -> None:
        self.kills += 1

    def poll(self) -> None:
        """It goes on."""


async def test_a_plane_that_starts_may_be_silent_for_longer_also_after_its_first_word() -> None:
    gate = gate_process()
    nothing = cast("Any", None)
    runner = PlaneRunner(nothing, begun=nothing, ended=nothing, silent_s=0.0)
    now = gate.now
    end = GateEnd(gate.gate, gate, InternalErrors(now, lambda _: None), now)
    gate.attach(end)
    # It has asked for what it begins with, and reads its groups file now.
    end.received_at = Nanos(time.monotonic_ns())
    process = Process()
    watch = asyncio.create_task(runner._watch(cast("subprocess.Popen[bytes]", process), end))
    for _ in range(STARTING_LOOKS // 2):
        await asyncio.sleep(0)
    assert process.kills == 0
    gate.say_health(gate.health())
    for _ in range(SILENT_LOOKS):
        await asyncio.sleep(0)
    assert process.kills == 1
    await watch


async def test_a_stop_does_not_wait_for_one_that_cannot_be_killed() -> None:
    nothing = cast("Any", None)
    runner = PlaneRunner(nothing, begun=nothing, ended=nothing, silent_s=0.0)
    process = Process()
    runner._process = cast("subprocess.Popen[bytes]", process)
    await runner.stop(0.0)
    assert process.kills == 1


@pytest.mark.slow
async def test_it_imports_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit(77)")
    monkeypatch.chdir(tmp_path)
    gate, nothing = gate_process(), cast("Any", None)

    def make_end() -> GateEnd:
        return GateEnd(gate.gate, gate, gate.errors, gate.now)

    async def begun(_end: GateEnd, relay: socket.socket) -> None:
        relay.close()

    runner = PlaneRunner(make_end, begun=begun, ended=nothing, silent_s=60.0)
    # What it begins with is not there.
    assert await runner._run_one() == "ended with exit code 1"
