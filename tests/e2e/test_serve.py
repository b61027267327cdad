"""`rgd serve` as an operator meets it when something is wrong or set otherwise.

Not covered: a daemon that works (test_three_daemons.py), one that does not start (test_failed_starts.py).
"""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient, DaemonRefused
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.app.demo.cluster import Daemon
from tests.support import components

pytestmark = pytest.mark.e2e

#: Nobody listens there: port 1 is reserved.
NOWHERE = "pulsar://127.0.0.1:1"


async def test_without_its_pulsar_it_serves_and_says_that_it_is_degraded(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    daemon = Daemon("broker-1", tmp_path, NOWHERE, {"RGD_BUILD": "0a1b2c3"})
    await daemon.start()
    try:
        async with DaemonClient(daemon.base) as client, asyncio.timeout(120):
            answer = await client.acquire({"group": "gold"})
            assert answer["granted"]
            # Ready in spite of Pulsar, once the two rounds of a start are over. The log says so a
            # moment after the answer.
            while not (is_degraded(await client.readiness()) and "ready" in logged(tmp_path)):
                pass
    finally:
        assert await daemon.stop() == 0
    lines = logged(tmp_path)
    assert lines.keys() >= {"starting", "unreachable", "ready", "stopped"}
    assert lines["starting"]["build"] == lines["stopped"]["build"] == "0a1b2c3"


async def test_without_a_usage_log_nothing_is_written_and_its_readers_are_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    daemon = Daemon(
        "broker-1",
        tmp_path,
        NOWHERE,
        {"RGD_LOG__ENABLED": "false", "RGD_EXCHANGE__ROUND_MS": "100"},
    )
    await daemon.start()
    try:
        async with DaemonClient(daemon.base) as client, asyncio.timeout(120):
            while not is_degraded(await client.readiness()):
                await client.acquire({"group": "gold"})
            notes = (await client.readiness())["degraded"]
            assert not any(note.startswith("usage log") for note in notes)
            with pytest.raises(DaemonRefused, match=r"log\.enabled"):
                await client.log_cursors()
    finally:
        assert await daemon.stop() == 0
    assert not any((tmp_path / "log").rglob("*.log"))


@pytest.mark.parametrize("fsync", ["interval", "never"])
async def test_a_log_folder_that_is_removed_is_made_again(tmp_path: Path, fsync: str) -> None:
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    environ = {"RGD_LOG__FSYNC": fsync, "RGD_EXCHANGE__ROUND_MS": "100"}
    daemon = Daemon("broker-1", tmp_path, NOWHERE, environ)
    log = tmp_path / "log"
    await daemon.start()
    try:
        async with DaemonClient(daemon.base) as client, asyncio.timeout(120):
            while not any(path.stat().st_size for path in log.rglob("*.log")):
                await client.acquire({"group": "gold"})
            shutil.rmtree(log)
            while not any(path.stat().st_size for path in log.rglob("*.log")):
                await client.acquire({"group": "gold"})
    finally:
        assert await daemon.stop() == 0
    # Indexes continue, so that a reader sees the gap.
    assert min(int(path.stem) for path in log.rglob("*.log")) > 0


RACK = """
class Rack:
    def intercept(self, timestamp_ms, index):
        return b"\\x7a\\x02r7"
"""
INTERCEPTORS = "RGD_LOG__BROKERENTRYMETADATAINTERCEPTORS"


async def test_an_interceptor_of_ones_own_is_loaded_by_its_dotted_path(tmp_path: Path) -> None:
    """PIP-70's interface, in a daemon."""
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    (tmp_path / "acme_interceptors.py").write_text(RACK)
    environ = {
        "PYTHONPATH": str(tmp_path),
        INTERCEPTORS: "AppendIndexMetadataInterceptor,acme_interceptors.Rack",
        "RGD_EXCHANGE__ROUND_MS": "100",
    }
    daemon = Daemon("broker-1", tmp_path, NOWHERE, environ)
    await daemon.start()
    try:
        async with DaemonClient(daemon.base) as client, asyncio.timeout(120):
            while not any(path.stat().st_size for path in (tmp_path / "log").rglob("*.log")):
                await client.acquire({"group": "gold"})
    finally:
        assert await daemon.stop() == 0
    entries = [one.entry for one in read_entries(tmp_path / "log") if isinstance(one, LogEntry)]
    assert {entry.broker.unknown for entry in entries if entry.broker} == {b"\x7a\x02r7"}
    assert [entry.index for entry in entries] == list(range(len(entries)))


def is_degraded(readiness: dict[str, Any]) -> bool:
    """Whether the daemon serves and says that it cannot reach the exchange."""
    notes = readiness.get("degraded", [])
    return readiness["ready"] and any(note.startswith("exchange: unreachable") for note in notes)


def logged(folder: Path) -> dict[str, dict[str, Any]]:
    """The last event of each code in the log of broker-1: the whole lines that it has so far."""
    whole = (folder / "broker-1.log").read_text().rpartition("\n")[0]
    return {line["code"]: line for line in map(json.loads, whole.splitlines())}


async def test_a_second_daemon_of_one_name_refuses_to_start(tmp_path: Path) -> None:
    components.embedded_broker()
    (tmp_path / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1000}}}\n")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "groups.yaml").write_text(
        "groups: {gold: {publish: {messages: 1000}}}\n"
    )
    broker = EmbeddedBroker(tmp_path / "exchange")
    url = await broker.ensure()
    first = Daemon("broker-1", tmp_path, url)
    second = Daemon("broker-1", tmp_path / "second", url)
    try:
        await first.start()
        async with DaemonClient(first.base) as client, asyncio.timeout(120):
            while not await client.is_ready():
                pass
            await second.start()
            assert await second.wait() == 1
            assert await client.is_ready()
    finally:
        await second.stop()
        await first.stop()
        await broker.stop()
    said = (tmp_path / "second" / "broker-1.log").read_text()
    assert len([line for line in said.splitlines() if line.startswith("rgd: another daemon")]) == 1
    assert "Traceback" not in said
