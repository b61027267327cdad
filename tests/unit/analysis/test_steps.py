"""Steps are found in the log, and the rounds after them counted.

Not covered: whether a count agrees with a clock beside the load, which the demo's verdict has.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rgd.analysis import wording
from rgd.analysis.asked import TimeRange
from rgd.analysis.steps import Step, find_steps, note_membership
from rgd.core.policies.model import SharePolicyName
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of
from tests.unit.analysis.conftest import ReadLogs

#: What each broker admitted and wanted, and the quota, for how many rounds.
Phase = tuple[int, float, Sequence[tuple[float, float]]]


def play(folder: Path, *phases: Phase) -> None:
    """Log the phases."""
    for broker in range(len(phases[0][2])):
        usages = [
            (rounds, Usage("gold", *each[broker], quota=quota)) for rounds, quota, each in phases
        ]
        log_of(folder, f"b{broker}", *usages)


def steps(logs: Any) -> list[Step]:
    windows = logs.windows()
    found: list[Step] = find_steps(windows, windows.rates["messages"], logs.fairness())
    return found


def test_a_step_in_the_quota_has_that_cause(tmp_path: Path, read_logs: ReadLogs) -> None:
    play(tmp_path, (10, 100, [(50, 90), (50, 90)]), (10, 50, [(25, 90), (25, 90)]))

    assert steps(read_logs(tmp_path)) == [Step(START_MS + 10_000, "quota", 0, 100, 50)]


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_log_too_short_for_a_level_has_no_steps(
    tmp_path: Path, read_logs: ReadLogs, rounds: int
) -> None:
    play(tmp_path, (rounds, 100, [(50, 90), (50, 90)]))

    assert steps(read_logs(tmp_path)) == []


@pytest.mark.parametrize("values", [("weight", None, None), ("policy", "max-min", "steal")])
def test_a_step_at_which_a_weight_or_the_policy_changed_has_that_cause(
    tmp_path: Path, read_logs: ReadLogs, values: tuple[str, str | None, str | None]
) -> None:
    cause, before, after = values
    policy = SharePolicyName(after or "max-min")
    for broker, (admitted, wanted) in enumerate([(80, 90), (20, 20)]):
        maker = LogMaker(tmp_path / f"b{broker}", f"b{broker}")
        maker.rounds(10, Usage("gold", 50, 90, quota=100))
        maker.weight *= 3 if cause == "weight" and broker == 0 else 1
        maker.rounds(10, Usage("gold", admitted, wanted, quota=100, policy=policy))
        maker.close()

    assert steps(read_logs(tmp_path)) == [Step(START_MS + 10_000, cause, 0, before, after)]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_broker_that_joins_or_leaves_is_the_cause_and_what_it_wants_later_is_not(
    tmp_path: Path, read_logs: ReadLogs, is_killed: bool
) -> None:
    first = LogMaker(tmp_path / "b0", "b0")
    second = LogMaker(tmp_path / "b1", "b1", start_ms=START_MS + 10_000)
    first.rounds(10, Usage("gold", 90, 90, quota=100))
    for maker in (first, second):
        maker.rounds(10, Usage("gold", 50, 90, quota=100))
    # In the middle of its life it wants less: that is demand.
    first.rounds(10, Usage("gold", 80, 90, quota=100))
    second.rounds(10, Usage("gold", 20, 20, quota=100))
    for maker in (first, second):
        maker.rounds(10, Usage("gold", 50, 90, quota=100))
    if not is_killed:
        second.round(Usage("gold", 50, 90, quota=100), last=True)
        first.round(Usage("gold", 50, 90, quota=100))
    first.rounds(10, Usage("gold", 90, 90, quota=100))
    for maker in (first, second):
        maker.close()
    logs = read_logs(tmp_path)
    found = logs.found()

    note_membership(found, logs.facts().changes, 4000)

    causes = [(step["cause"], *step["joined"], *step["left"]) for step in found["steps"]]
    assert causes == [("membership", "b1"), ("demand",), ("demand",), ("membership", "b1")]
    told = [wording.step_row(step, "messages")[2] for step in found["steps"]]
    assert told == ["b1 joined", "from 180/s to 110/s", "from 110/s to 180/s", "b1 left"]


def test_where_the_logs_or_the_range_end_nobody_joins_or_leaves(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    for broker in ("b0", "b1"):
        log_of(tmp_path, broker, (40, Usage("gold", 50, 90, quota=100)))

    within = TimeRange(START_MS + 15_000, START_MS + 30_000)
    assert read_logs(tmp_path, within=within).facts().changes == ()
    assert all(is_join for *_, is_join in read_logs(tmp_path).facts().changes)
