"""What a scenario of `rgd report --what-if` costs beside judging the log itself, in one process and without Spark.

    python bench/what_if.py [--json]

Groups with windows of one round, demand that changes each round and steps twofold now and then, both dimensions. A row
is one broker in one window. A worker replays groups together, up to `REPLAYED_PIECES` rows, so more groups with fewer
windows cost less a row. Not measured: reading the log and joining its pieces, which a report does once.
"""

import time
from typing import Final

import numpy as np

from bench.harness import run
from rgd.analysis.evaluation import REPLAYED_PIECES, Evaluator
from rgd.analysis.replay import replay
from rgd.analysis.row_columns import Floats
from rgd.analysis.scenarios import AS_LOGGED, POLICIES, Scenario
from rgd.analysis.windows import GroupWindows, Joined, Rates
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.shares.model import WEIGHT_ONE

#: Windows and brokers of a group.
SHAPES: Final = ((400, 20), (2000, 20), (2000, 100))
STEP_WINDOWS: Final = 50
ROUND_MS: Final = 1000


def group_of(windows: int, brokers: int, dice: np.random.Generator) -> GroupWindows:
    """A group whose demand is about its quota of messages."""
    level = 1 + np.arange(windows)[:, None] // STEP_WINDOWS % 2
    wanted = dice.random((windows, brokers)) * 100 * level
    quota = np.full(windows, 50.0 * brokers)
    return GroupWindows(
        group="gold",
        kind="publish",
        brokers=tuple(f"broker-{place:03}" for place in range(brokers)),
        start_ms=np.arange(windows) * ROUND_MS,
        seconds=np.ones(windows),
        policy=(SharePolicyName.MAX_MIN.value,) * windows,
        covered=np.ones((windows, brokers)),
        is_begun=np.zeros((windows, brokers), bool),
        weight=np.full((windows, brokers), WEIGHT_ONE),
        rates={
            "messages": rates_of(wanted, quota),
            "bytes": rates_of(wanted * 1000, np.full(windows, np.nan)),
        },
    )


def rates_of(wanted: Floats, quota: Floats) -> Rates:
    """Rates of which two thirds were admitted."""
    return Rates(
        admitted=wanted * 2 / 3,
        wanted=wanted,
        refused=wanted / 3,
        share=wanted,
        quota=quota,
        quota_logged=np.full(wanted.shape, NO_RATE),
        quota_max=np.nan_to_num(quota, nan=np.inf),
        recovered=np.zeros_like(quota),
    )


def rows_per_s(groups: list[GroupWindows], scenario: Scenario | None) -> float:
    """Rows that a second of processor time judges, or replays and judges."""
    evaluator = Evaluator(ROUND_MS, ROUND_MS)
    begun = time.process_time()
    found = groups if scenario is None else replay(groups, scenario, ROUND_MS, ROUND_MS)
    list(evaluator.judged(map(Joined.alone, found)))
    return groups[0].covered.size * len(groups) / (time.process_time() - begun)


def measure() -> dict[str, float]:
    """All figures."""
    figures: dict[str, float] = {}
    for windows, brokers in SHAPES:
        dice = np.random.default_rng(windows * brokers)
        count = max(1, REPLAYED_PIECES // (windows * brokers))
        groups = [group_of(windows, brokers, dice) for _ in range(count)]
        name = f"{count}_groups_{windows}_windows_{brokers}_brokers"
        figures[f"{name}_judged_rows_per_s"] = round(rows_per_s(groups, None))
        for policy in POLICIES:
            scenario = AS_LOGGED if policy == groups[0].policy[0] else Scenario(policy, policy)
            figures[f"{name}_{policy}_rows_per_s"] = round(rows_per_s(groups, scenario))
    return figures


if __name__ == "__main__":
    run(__doc__, lambda _: measure())
