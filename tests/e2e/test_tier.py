"""A daemon as a process, its tier failing and coming back, and killed in between: nothing lost, nothing double.

The daemon's own `/metrics` tell the lag, and `GET /v1/log/entries` reads what is in the tier and on disk as
one log. Not covered: every step that can fail (tests/unit/storage, tests/integration/tier).
"""

import asyncio
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.app.demo.cluster import Daemon
from tests.support.lone_daemon import SOON_S, lone_daemon, running
from tests.support.tiers import Gate, S3Server, s3_environment

pytestmark = pytest.mark.e2e

LAG = 'rgd_remote_copy_lag_segments{partition="broker-1",topic="usage"}'
HELD = 'rgd_remote_log_segments{partition="broker-1",topic="usage"}'
OLDEST = 'rgd_upload_tier_lag{partition="broker-1",topic="usage"}'


async def fetched(url: str) -> bytes:
    def fetch() -> bytes:
        with urllib.request.urlopen(url, timeout=SOON_S) as answer:
            return bytes(answer.read())

    return await asyncio.to_thread(fetch)


async def figure(daemon: Daemon, name: str) -> float:
    page = (await fetched(f"{daemon.base}/metrics")).decode()
    return float(next(line for line in page.splitlines() if line.startswith(name)).split()[-1])


async def until(daemon: Daemon, is_so: Callable[[float], bool]) -> None:
    """Ask for work until the lag is so: each round is an entry, and entries close segments."""
    async with DaemonClient(daemon.base) as client, asyncio.timeout(SOON_S):
        while not is_so(await figure(daemon, LAG)):
            await client.acquire({"group": "gold"})


def with_tier(tier: Path | str) -> dict[str, str]:
    """Settings of a daemon with short segments and a tier."""
    return {
        "LOG__TIER_URL": str(tier),
        "LOG__SEGMENT_BYTES": "4096",
        "LOG__SEGMENT_AGE_S": "1",
        "LOG__EXPOSINGBROKERENTRYMETADATATOCLIENTENABLED": "true",
        "EXCHANGE__MIN_INTERVAL_MS": "50",
        "EXCHANGE__SETTLE_MAX_MS": "50",
    }


async def until_held(daemon: Daemon) -> None:
    """Ask for work until the tier holds a segment."""
    async with DaemonClient(daemon.base) as client, asyncio.timeout(SOON_S):
        while not await figure(daemon, HELD):
            await client.acquire({"group": "gold"})


async def all_entries(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query = "index=0"
    while True:
        page = json.loads(await fetched(f"{daemon.base}/v1/log/entries?limit=1000&{query}"))
        found += page["entries"]
        if not page["more"]:
            return found
        query = f"index={page['next_index']}"


async def test_a_tier_that_fails_is_caught_up_with(tmp_path: Path) -> None:
    tier = tmp_path / "tier"
    tier.write_bytes(b"")  # A file: no folder can be made there, so the tier is down.
    daemon = lone_daemon(tmp_path, **with_tier(tier))

    await daemon.start()
    await until(daemon, lambda lag: lag >= 3)
    behind = await figure(daemon, OLDEST)
    await daemon.kill()

    async with running(daemon):
        # True right after a start, while the tier is still down.
        assert await figure(daemon, OLDEST) >= behind
        tier.unlink()
        await until(daemon, lambda lag: lag == 0)
        entries = await all_entries(daemon)
        indexes = [one["broker_entry_metadata"]["index"] for one in entries]
        assert indexes == list(range(len(indexes)))

    in_tier = [found for found in read_entries(tier) if isinstance(found, LogEntry)]
    assert in_tier
    (folder,) = [path.parent for path in (tmp_path / "log").rglob("*.log")][:1]
    on_disk = [found for found in read_entries(folder) if isinstance(found, LogEntry)]
    both = sorted(
        {*(one.entry.index or 0 for one in in_tier), *(one.entry.index or 0 for one in on_disk)}
    )
    assert both == list(range(len(both)))
    assert both[-1] >= indexes[-1]


async def test_a_tier_that_hangs_delays_neither_what_is_on_disk_nor_the_end(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(s3_server.port)
    daemon_of_tier = with_tier(f"s3://{s3_server.make_bucket()}")
    with s3_environment(monkeypatch, gate.port):
        daemon = lone_daemon(tmp_path, **daemon_of_tier)
    async with running(daemon):
        await until_held(daemon)
        gate.is_stalled = True
        first_on_disk = min(int(path.stem) for path in (tmp_path / "log").rglob("*.log"))
        host, port = daemon.base.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /v1/log/entries?index=0 HTTP/1.1\r\nHost: rgd\r\n\r\n")
        await writer.drain()
        page = json.loads(
            await fetched(f"{daemon.base}/v1/log/entries?limit=1&index={first_on_disk + 1000}")
        )
        assert page["entries"] == []
        assert await figure(daemon, LAG) >= 0
        # 0: SIGTERM was enough, within `shutdown_timeout_ms`.
        assert await daemon.stop() == 0
        writer.close()
    gate.close()


async def test_what_is_too_old_leaves_an_idle_daemons_tier(tmp_path: Path) -> None:
    """KIP-963's DeleteTierLag by the age now: nothing is logged any more, and no segment closes."""
    tier = tmp_path / "tier"
    short = {"LOG__RETENTION_S": "3", "LOG__TIER_LOOK_S": "1", "LOG__TIER_DELETE_DELAY_S": "0"}
    daemon = lone_daemon(tmp_path, **with_tier(tier), **short)
    async with running(daemon):
        await until_held(daemon)
        # Marked first, and then deleted.
        async with asyncio.timeout(SOON_S):
            while await figure(daemon, HELD) or any(tier.rglob("*.log")):
                pass
