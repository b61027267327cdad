"""Three real daemons under load are restarted one by one, as the DaemonSet's manifest has it: limits hold, no record is lost.

The restarts and the figures are bench/rollout.py's, with a shorter preStop. Not covered: Kubernetes itself, and how long a
machine takes to start a daemon, which the benchmark measures.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from bench.rollout import Order, roll
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.app.demo.plan import BROKERS
from tests.support import components

pytestmark = pytest.mark.e2e


async def test_a_rollout_keeps_the_quota_and_costs_no_more_than_a_part(tmp_path: Path) -> None:
    components.embedded_broker()
    tier = tmp_path / "tier"
    # Not below tmp_path: the path of a unix socket may have 108 characters.
    with tempfile.TemporaryDirectory() as folder:
        order = replace(Order.of_manifest(), pre_stop_s=1.0)
        figures = await roll(Path(folder), order, {"RGD_LOG__TIER_URL": str(tier)})
        assert figures["restarts"] == len(BROKERS)
        assert figures["admitted_5s_max"] <= 1.05, str(figures)
        # At most the part of the daemon that is away is refused.
        assert figures["admitted_5s_min"] >= 1 - 1 / len(BROKERS), str(figures)
        for broker in BROKERS:
            (in_tier,) = {path.parent for path in (tier / "usage" / broker).rglob("*.log")}
            (on_disk,) = {path.parent for path in (Path(folder) / "log" / broker).glob("*.log")}
            assert last_index(in_tier) == last_index(on_disk) > 0


def last_index(folder: Path) -> int:
    *_, last = read_entries(folder)
    assert isinstance(last, LogEntry)
    assert last.entry.index is not None
    return last.entry.index
