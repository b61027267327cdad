"""The report of logs that do not tell the truth by themselves, through Spark: the simulator's.

One clock is an hour ahead, one jumps back by twenty minutes, one daemon is stopped, one is killed.
Not covered: each of these alone, and what else there is (tests/unit/analysis/test_untrue_logs).
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.analysis.report import run_report
from sim.run import run
from sim.scenarios import SCENARIOS
from sim.usage_log import write_usage_logs

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_a_report_corrects_what_it_can_and_tells_the_rest(tmp_path: Path) -> None:
    outcome = run(replace(SCENARIOS["false-clocks"], rounds=48, asks_per_s=50.0), seed=3)
    write_usage_logs(outcome.cluster, tmp_path / "log")

    summary = run_report([str(tmp_path / "log")], tmp_path / "out")

    log = json.loads((tmp_path / "out" / "summary.json").read_bytes())["log"]
    ahead_s = {one["broker"]: one["ahead_s"] for one in log["clocks"]}
    assert ahead_s == pytest.approx({"broker-001": 3600, "broker-002": -1200}, abs=1.0)
    assert [one["broker"] for one in log["silent"]] == ["broker-003", "broker-004"]
    assert [one["broker"] for one in log["kills"]] == ["broker-004"]
    assert log["unaligned_clocks"] == []
    # By the stamps it would be an hour and a half.
    assert log["to_ms"] - log["from_ms"] < 60_000

    (group,) = summary.groups
    assert group["seconds"] < 60
    assert group["starved"] == []
    assert group["utilisation"] > 0.9
    # One of them was killed.
    assert {step["cause"] for step in group["steps"]} <= {"demand", "membership"}

    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    said = " ".join(summary.sentences)
    assert "Nothing is missing" not in page
    assert all(
        sentence in said for sentence in ("broker-001's was 60.0 min ahead", "silent 2 times")
    )
    assert "clock 60.0 min ahead, corrected" in page
    assert "silent: not judged" in page
