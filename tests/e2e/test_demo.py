"""The demo as a person runs it: exit code, last line, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import components

pytestmark = [pytest.mark.e2e, pytest.mark.spark]


def test_every_phase_of_the_demo_is_fair_within_three_rounds(tmp_path: Path) -> None:
    components.java()
    components.embedded_broker()
    out = tmp_path / "demo"
    ran = subprocess.run(
        [sys.executable, "-m", "rgd", "demo", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    last = ran.stdout.splitlines()[-1] if ran.stdout else ran.stderr
    verdict = json.loads(last)
    assert ran.returncode == 0, ran.stdout
    assert verdict["verdict"] == "ok"
    assert len(verdict["phases"]) == 6
    for phase in verdict["phases"]:
        assert phase["ok"], phase
        assert phase["rounds"] <= 3, phase
        assert phase["worst_error"] <= 0.10, phase
    assert Path(verdict["report"]).read_text().startswith("<!")
    summary = json.loads((out / "report" / "summary.json").read_text())
    gold = next(group for group in summary["groups"] if group["dimension"] == "messages")
    assert gold["group"] == "gold"
    assert gold["admitted"] > 0
    assert list((out / "report" / "windows").glob("**/*.parquet"))
