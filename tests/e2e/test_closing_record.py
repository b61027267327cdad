"""How a real daemon's log ends: with a closing record after SIGTERM, without one after SIGKILL.

Not covered: what the report says of it (tests/unit/analysis/test_untrue_logs).
"""

import asyncio
from pathlib import Path

import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.adapters.usagelog.reader import DamagedEntry, read_entries
from rgd.app.demo.cluster import Daemon
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_records import LogReader

pytestmark = pytest.mark.e2e

#: Nobody listens there: port 1 is reserved.
NOWHERE = "pulsar://127.0.0.1:1"


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
    return [record for entry in entries if (record := reader.record(entry)) is not None]


async def live_until_logged(daemon: Daemon, folder: Path) -> None:
    """Start a daemon, ask of it, and wait until a round of it is in its log."""
    before = len(records(folder))
    await daemon.start()
    async with DaemonClient(daemon.base) as client, asyncio.timeout(120):
        while len(records(folder)) == before:
            await client.acquire({"group": "gold"})


async def test_an_orderly_stop_writes_a_closing_record_and_a_kill_does_not(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    daemon = Daemon("broker-1", tmp_path, NOWHERE)

    await live_until_logged(daemon, tmp_path)
    assert await daemon.stop() == 0
    orderly = records(tmp_path)
    await live_until_logged(daemon, tmp_path)
    await daemon.kill()

    killed = records(tmp_path)[len(orderly) :]
    assert [record.last for record in orderly] == [False] * (len(orderly) - 1) + [True]
    assert killed
    assert not any(record.last for record in killed)
    assert {record.sender.incarnation for record in orderly}.isdisjoint(
        record.sender.incarnation for record in killed
    )
    ends = [record.ended_ns for record in (*orderly, *killed)]
    assert ends == sorted(ends)
    assert min(ends) > 0
