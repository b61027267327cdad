"""What reckoning shares costs: one group over 3, 10 and 100 brokers, and everything anew.

    python bench/shares.py [--json]

Demand is heavy-tailed and the quota half of it, so water-filling has to pour. A full recompute is
`GROUPS` groups x `BROKERS` brokers in one dimension, as after a change of members; beside it, in the
same run, the least any vectorised way would have to do: numpy sorting each group's wants.
Not measured: finding the rows in the usage map, and setting the buckets afterwards.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import to_milli

GROUPS: Final = 5_000
BROKERS: Final = 5
FLOOR_PPM: Final = 10_000
REPEATS: Final = 5
#: So many rows are shared out between two looks at the clock.
ROWS_A_PASS: Final = 20_000


def rows_of(brokers: int, dice: random.Random) -> list[Row]:
    """Heavy-tailed wants, of which half was admitted."""
    rows = []
    for broker in range(brokers):
        wanted = to_milli(100 * dice.paretovariate(1.2))
        rows.append(Row(f"broker-{broker:03}", admitted=wanted // 2, wanted=wanted))
    return rows


def best_s(work: Callable[[], object]) -> float:
    """Seconds that `work` takes at best."""
    took = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)


def share_out(policy: SharePolicyName, groups: list[list[Row]]) -> None:
    """Reckon every group's shares once; half of what is wanted is there."""
    for rows in groups:
        allocate(policy, sum(row.wanted for row in rows) // 2, rows, floor_ppm=FLOOR_PPM)


def one_group(brokers: int, policy: SharePolicyName) -> float:
    """Microseconds to share one group over so many brokers."""
    dice = random.Random(brokers)
    groups = [rows_of(brokers, dice) for _ in range(ROWS_A_PASS // brokers)]
    return best_s(lambda: share_out(policy, groups)) / len(groups) * 1e6


def recompute() -> dict[str, float]:
    """Everything anew, and numpy's sort of as many rows."""
    dice = random.Random(7)
    groups = [rows_of(BROKERS, dice) for _ in range(GROUPS)]
    wants = np.array([[row.wanted for row in rows] for rows in groups], dtype=np.int64)
    recompute_s = best_s(lambda: share_out(SharePolicyName.MAX_MIN, groups))
    sort_s = best_s(lambda: np.sort(wants, axis=1))
    return {
        "recompute_groups": GROUPS,
        "recompute_brokers": BROKERS,
        "recompute_ms": round(recompute_s * 1000, 1),
        "recompute_rows_per_s": round(GROUPS * BROKERS / recompute_s),
        "numpy_sort_ms": round(sort_s * 1000, 3),
        "recompute_to_numpy_sort": round(recompute_s / sort_s),
    }


def measure() -> dict[str, float]:
    """All figures."""
    figures = {
        f"max_min_{brokers}_brokers_us": round(one_group(brokers, SharePolicyName.MAX_MIN), 1)
        for brokers in (3, 10, 100)
    }
    for policy in SharePolicyName:
        if policy is not SharePolicyName.MAX_MIN:
            figures[f"{policy.name.lower()}_10_brokers_us"] = round(one_group(10, policy), 1)
    return figures | recompute()


def main() -> None:
    """Measure, print a table or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    figures = measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>12,}")


if __name__ == "__main__":
    main()
