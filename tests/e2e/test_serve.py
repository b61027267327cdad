"""`rgd serve` as an operator meets it when something is wrong or set otherwise.

Not covered: a daemon that works (test_three_daemons.py), one that does not start (test_failed_starts.py), one whose
name is taken (test_one_name.py).
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.http.client import DaemonClient, DaemonRefused
from tests.support.lone_daemon import lone_daemon, running

pytestmark = pytest.mark.e2e


async def test_without_its_pulsar_it_serves_and_says_that_it_is_degraded(tmp_path: Path) -> None:
    async with running(lone_daemon(tmp_path, BUILD="0a1b2c3")) as client:
        answer = await client.acquire({"group": "gold"})
        assert answer["granted"]
        # Ready in spite of Pulsar, once the two rounds of a start are over. The log says so a
        # moment after the answer.
        while not (is_degraded(await client.readiness()) and "ready" in logged(tmp_path)):
            pass
    lines = logged(tmp_path)
    assert lines.keys() >= {"starting", "unreachable", "ready", "stopped"}
    assert lines["starting"]["build"] == lines["stopped"]["build"] == "0a1b2c3"


async def test_without_a_usage_log_nothing_is_written_and_its_readers_are_told(
    tmp_path: Path,
) -> None:
    async with running(lone_daemon(tmp_path, LOG__ENABLED="false")) as client:
        while not is_degraded(await client.readiness()):
            await client.acquire({"group": "gold"})
        notes = (await client.readiness())["degraded"]
        assert not any(note.startswith("usage log") for note in notes)
        with pytest.raises(DaemonRefused, match=r"log\.enabled"):
            await client.log_cursors()
    assert not any((tmp_path / "log").rglob("*.log"))


@pytest.mark.parametrize("fsync", ["interval", "never"])
async def test_a_log_folder_that_is_removed_is_made_again(tmp_path: Path, fsync: str) -> None:
    log = tmp_path / "log"
    async with running(lone_daemon(tmp_path, LOG__FSYNC=fsync)) as client:
        await ask_until_logged(client, log)
        # Out of its way first: it replaces the index beside a segment while the folder is emptied.
        shutil.rmtree(log.rename(tmp_path / "removed"))
        await ask_until_logged(client, log)
    # Indexes continue, so that a reader sees the gap.
    assert min(int(path.stem) for path in log.rglob("*.log")) > 0


async def ask_until_logged(client: DaemonClient, log: Path) -> None:
    """Ask for work until there is something in a log."""
    while not is_logged(log):
        await client.acquire({"group": "gold"})


def is_logged(log: Path) -> bool:
    return any(path.stat().st_size for path in log.rglob("*.log"))


def is_degraded(readiness: dict[str, Any]) -> bool:
    """Whether the daemon serves and says that it cannot reach the exchange."""
    notes = readiness.get("degraded", [])
    return readiness["ready"] and any(note.startswith("exchange: unreachable") for note in notes)


def logged(folder: Path) -> dict[str, dict[str, Any]]:
    """The last event of each code in the log of broker-1: the whole lines that it has so far."""
    whole = (folder / "broker-1.log").read_text().rpartition("\n")[0]
    return {line["code"]: line for line in map(json.loads, whole.splitlines())}
