"""A daemon is two processes, whose deaths and stops are those of one.

Not covered: that several agree (test_three_daemons.py).
"""

import asyncio
import os
import signal
from pathlib import Path

import aiohttp
import psutil
import pytest

from rgd.adapters.http.client import DaemonClient, DaemonUnreachable
from rgd.adapters.usagelog.reader import DamagedEntry, LogEntry, read_entries
from rgd.app.demo.cluster import Daemon
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_records import LogReader
from tests.support.lone_daemon import SOON_S, lone_daemon, plane_of, running

pytestmark = pytest.mark.e2e

CALLERS = 8


#: Raises as often as makes a daemon end, and can be loaded and log what comes after it.
FAILS = """
calls = iter(range(1_000_000))
class Fails:
    def intercept(self, timestamp_ms, index):
        assert not 0 < next(calls) <= 121
        return b"\\x7a\\x02r7"
"""


def daemon_in(folder: Path, **settings: str) -> Daemon:
    return lone_daemon(folder, EXCHANGE__ON_ISOLATION="open", **settings)


def records(folder: Path) -> list[RoundRecord]:
    """The records of all of a folder's logs, in order."""
    logs = sorted({segment.parent for segment in folder.rglob("*.log") if segment.stem.isdigit()})
    entries = [
        found.entry
        for log in logs
        for found in read_entries(log)
        if not isinstance(found, DamagedEntry)
    ]
    reader = LogReader()
    read = map(reader.read, entries)
    return [record for record in read if isinstance(record, RoundRecord)]


def is_replaced(daemon: Daemon, plane: psutil.Process) -> bool:
    """Whether another plane was started; then the gate has noticed that this one died."""
    return any(one.pid != plane.pid for one in psutil.Process(daemon.pid).children())


async def ask_to_the_end(daemon: Daemon) -> int:
    """Ask one question after the other until nobody answers; how many were granted."""
    granted = 0
    async with DaemonClient(daemon.base) as client:
        try:
            while True:
                granted += bool((await client.acquire({"group": "gold"}))["granted"])
        except DaemonUnreachable:
            return granted


def all_admitted(folder: Path) -> int:
    """All that was admitted by the log of a daemon that ended in order."""
    logged = records(folder)
    assert logged[-1].last
    return int(max(record.rows.admitted_total[0, 0] for record in logged if len(record.rows)))


async def test_the_log_has_every_grant_of_a_daemon_that_was_stopped_and_streams_end(
    tmp_path: Path,
) -> None:
    daemon = daemon_in(tmp_path)
    async with running(daemon) as client, asyncio.TaskGroup() as tasks:
        callers = [tasks.create_task(ask_to_the_end(daemon)) for _ in range(CALLERS)]
        views = client.watch()
        while not records(tmp_path):
            await anext(views)
        stopping = tasks.create_task(daemon.stop())
        async for _ in views:
            pass
        assert await stopping == 0
    assert all_admitted(tmp_path) == sum(task.result() for task in callers)


async def test_so_has_the_log_of_one_that_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing.py").write_text(FAILS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    daemon = daemon_in(tmp_path, LOG__BROKERENTRYMETADATAINTERCEPTORS="failing.Fails")
    await daemon.start()
    async with asyncio.timeout(SOON_S):
        granted = await asyncio.gather(*(ask_to_the_end(daemon) for _ in range(CALLERS)))
        assert await daemon.wait() == 1
    assert all_admitted(tmp_path) == sum(granted)
    found = [one.entry for one in read_entries(tmp_path / "log") if isinstance(one, LogEntry)]
    assert {entry.broker.unknown for entry in found if entry.broker} == {b"\x7a\x02r7"}


async def test_a_kill_leaves_no_plane_and_no_closing_record(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path)
    await daemon.start()
    async with DaemonClient(daemon.base) as client, asyncio.timeout(SOON_S):
        while not records(tmp_path):
            await client.acquire({"group": "gold"})
    plane = plane_of(daemon)
    await daemon.kill()
    assert await asyncio.to_thread(plane.wait, SOON_S) in {None, 1, -signal.SIGKILL}
    assert not any(record.last for record in records(tmp_path))


async def test_a_signal_to_all_its_processes_is_an_orderly_stop(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path)
    async with running(daemon):
        plane = plane_of(daemon)
        # As systemd does; of a terminal's it gets none, so that it may still be loading its modules.
        assert os.getpgid(plane.pid) == plane.pid
        for sent in (signal.SIGINT, signal.SIGTERM):
            plane.send_signal(sent)
        assert plane.is_running()
    assert not plane.is_running()
    assert records(tmp_path)[-1].last


async def test_answers_and_the_log_go_on_over_the_death_of_a_plane(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path)
    async with running(daemon) as client:
        for _ in range(2):
            before = len(records(tmp_path))
            while len(records(tmp_path)) == before:
                await client.acquire({"group": "gold"})
            plane = plane_of(daemon)
            plane.kill()
            while not is_replaced(daemon, plane) or "plane" in str(await client.readiness()):
                # Not one of them waits for the plane, and none is lost.
                assert (await client.acquire({"group": "gold"}))["granted"]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{daemon.base}/metrics") as page,
        ):
            text = await page.text()
            assert "rgd_plane_restarts_total 2.0" in text
            assert "\nrgd_gate_process_resident_memory_bytes " in text
    logged = records(tmp_path)
    assert len({record.sender for record in logged}) == 1
    assert [record.sequence for record in logged] == sorted(record.sequence for record in logged)


async def test_beside_a_plane_that_hangs_the_gate_is_isolated_until_it_goes_on(
    tmp_path: Path,
) -> None:
    daemon = daemon_in(tmp_path)
    # As much as ten seconds give, so that it is granted twice only where nothing is limited.
    much = {"group": "gold", "messages": 10_000_000}
    async with running(daemon) as client:
        while (await client.acquire(much))["granted"]:
            pass
        plane = plane_of(daemon)
        plane.suspend()
        while "says nothing" not in str(await client.readiness()):
            pass
        assert (await client.acquire(much))["granted"]
        plane.resume()
        while (await client.acquire(much))["granted"]:
            pass
        assert not is_replaced(daemon, plane)
