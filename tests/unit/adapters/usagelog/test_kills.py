"""Eighty writers killed at random moments, on a disk that writes parts and fails.

What each of them said was synced is in the log, and everything in it is whole, right and in order.
Not covered: loss of power, which also takes what was not synced (its shapes are in test_recovery.py).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
KILLS = 80


# Eighty processes start one after the other, which takes a minute on a busy machine.
@pytest.mark.timeout(900)
def test_a_log_survives_kills_on_a_disk_that_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.adapters.usagelog.killed_writers"]
    run = subprocess.run(
        [*command, str(tmp_path), str(KILLS), "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["kills"] == KILLS
    # Many lives got as far as a sync, so that the law was put to the test.
    assert told["lives_that_synced"] > KILLS // 10
    assert told["entries"] > KILLS
