"""Usage logs of a simulated cluster: stamped by the members' wall clocks, right or wrong.

Not covered: what the report makes of them (tests/integration/spark/test_untrue_logs).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.usagelog.reader import DamagedEntry, read_entries
from rgd.wire.frame import Entry
from sim.run import run
from sim.scenarios import SCENARIOS
from sim.usage_log import write_usage_logs

HOUR_MS = 3_600_000


def entries(folder: Path) -> list[Entry]:
    return [one.entry for one in read_entries(folder) if not isinstance(one, DamagedEntry)]


@pytest.mark.slow
def test_a_wrong_wall_clock_is_in_the_log_and_nowhere_else(tmp_path: Path) -> None:
    scenario = replace(SCENARIOS["false-clocks"], rounds=12, asks_per_s=50.0)
    no_clocks = replace(
        scenario,
        faults=lambda ground: tuple(
            fault for fault in scenario.faults(ground) if fault.deed.value != "clock"
        ),
    )
    outcome, right = run(scenario, seed=1), run(no_clocks, seed=1)
    write_usage_logs(outcome.cluster, tmp_path / "wrong")
    write_usage_logs(right.cluster, tmp_path / "right")

    assert outcome.line() == right.line()
    ahead = {}
    for name in outcome.cluster.names:
        wrong, true = entries(tmp_path / "wrong" / name), entries(tmp_path / "right" / name)
        assert [one.payload for one in wrong] == [one.payload for one in true]
        ahead[name] = {a.publish_time - b.publish_time for a, b in zip(wrong, true, strict=True)}
        stamps = [one.timestamp for one in wrong]
        assert stamps == sorted(stamps)
    assert ahead["broker-001"] == {HOUR_MS}
    assert ahead["broker-002"] == {0, -HOUR_MS // 3}
    assert ahead["broker-000"] == ahead["broker-003"] == ahead["broker-004"] == {0}
