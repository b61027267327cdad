"""What is said about a group agrees with what was logged.

Not covered: the words it is said in (test_wording).
"""

import json
from pathlib import Path

import pytest

from tests.support.log_maker import START_MS, Usage, log_of
from tests.unit.analysis.conftest import ReadLogs


def gold(admitted: float, wanted: float, quota: float | None = 100) -> Usage:
    return Usage("gold", admitted, wanted, quota=quota, share=quota)


def test_the_keys_that_scripts_rely_on(tmp_path: Path, read_logs: ReadLogs) -> None:
    log_of(tmp_path, "broker-1", (5, gold(70, 70)))
    log_of(tmp_path, "broker-2", (5, gold(30, 70)))

    found = read_logs(tmp_path).found()

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    names = [found[key] for key in ("group", "kind", "dimension", "lowest_ratio_broker")]
    assert names == ["gold", "publish", "messages", "broker-2"]
    rates = {"admitted": 100, "wanted": 140, "refused": 40, "quota": 100, "recovered": 0}
    rest = {"unmet": 40, "unused": 0, "utilisation": 1, "overshoot_max": 1, "jain_mean": 4 / 4.64}
    least = {"lowest_ratio": 0.6, "lowest_ratio_mean": 0.6, "seconds": 5, "windows": 5}
    figures = rates | rest | least
    assert {key: found[key] for key in figures} == pytest.approx(figures, abs=1e-6)
    assert found["rounds_to_fair"] is None
    assert found["policies"] == ["max-min"]
    assert (found["from_ms"], found["to_ms"]) == (START_MS, START_MS + 5000)


def test_a_quota_that_ends_is_averaged_over_the_time_it_was_there(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    log_of(tmp_path, "broker-1", (5, gold(100, 200, 100)), (5, gold(200, 200, None)))

    found = read_logs(tmp_path).found()

    assert (found["quota"], found["admitted"], found["utilisation"]) == (100, 150, 1.0)


@pytest.mark.parametrize(("rounds", "starved_s"), [(3, 0.0), (4, 4.0)])
@pytest.mark.parametrize("late_ms", [0, 5000])
def test_a_broker_that_begins_to_use_a_group_is_starved_only_after_two_rounds(
    tmp_path: Path, read_logs: ReadLogs, rounds: int, starved_s: float, late_ms: int
) -> None:
    """It cannot have its part before the others know its demand; two rounds are in three windows."""
    log_of(tmp_path, "broker-1", (late_ms // 1000 + rounds, gold(90, 90)), (9, gold(50, 90)))
    log_of(
        tmp_path, "broker-2", (rounds, gold(5, 90)), (9, gold(50, 90)), start_ms=START_MS + late_ms
    )

    assert read_logs(tmp_path).found()["starved_s"] == starved_s
