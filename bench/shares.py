"""What reckoning shares costs: many groups as columns, one group as objects, and numpy's sort.

    python bench/shares.py [--json]

Demand is heavy-tailed and the quota half of it, so every group is short and has to be filled. A full
recompute is `GROUPS` groups x `BROKERS` brokers, as after a change of members, in one dimension and in
two at once; again with twice and four times the groups, which has to cost twice and four times as
much; and with `MANY_BROKERS` brokers. Beside it, in the same run: the same groups one by one through
the entry for objects, and numpy sorting each group's wants, which is the least that filling by levels
would have to do. Not measured: finding the rows in the usage map, and setting the buckets afterwards.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import WEIGHT_ONE, Row
from rgd.core.shares.pip82 import USAGE_POLICIES, share_by_usage
from rgd.core.shares.registry import allocate
from rgd.core.units import Pair

GROUPS: Final = 5_000
BROKERS: Final = 5
MANY_BROKERS: Final = 100
FLOOR_PPM: Final = 10_000
#: What takes long is measured fewer times; the best counts, as other work on the machine only adds.
REPEATS: Final = 60
REPEATS_OF_OBJECTS: Final = 5
#: So many groups are shared out as objects between two looks at the clock.
GROUPS_A_PASS: Final = 200

Ints = NDArray[np.int64]


def wants_of(groups: int, brokers: int) -> Ints:
    """[groups, brokers, 2] heavy-tailed wants, Milli per second."""
    dice = np.random.default_rng(groups * brokers)
    scale = np.array([100_000.0, 100_000_000.0])
    return np.asarray((dice.pareto(1.2, (groups, brokers, 2)) + 1) * scale, np.int64)


def columns_of(wants: Ints, *, dimensions: int) -> tuple[Rows, Ints]:
    """Rows and quotas: half of what is wanted is there."""
    groups, brokers, _ = wants.shape
    quota = wants.sum(axis=1) // 2
    quota[:, dimensions:] = NO_RATE
    rows = Rows(
        group=np.repeat(np.arange(groups), brokers),
        broker_index=np.tile(np.arange(brokers), groups),
        wanted=wants.reshape(-1, 2),
        weight=np.full(groups * brokers, WEIGHT_ONE),
    )
    return rows, quota


def best_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds that `work` takes at best."""
    took = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)


def columns_s(groups: int, brokers: int, *, dimensions: int) -> float:
    """Seconds to share so many groups out at once."""
    rows, quota = columns_of(wants_of(groups, brokers), dimensions=dimensions)
    return best_s(lambda: share_out(rows, quota, brokers=brokers, floor_ppm=FLOOR_PPM))


def objects_s(groups: int, brokers: int, policy: SharePolicyName) -> float:
    """Seconds to share so many groups out one by one, in one dimension."""
    asked = [
        [
            Row(f"broker-{place:03}", admitted=Pair(want // 2), wanted=Pair(want))
            for place, want in enumerate(of_group)
        ]
        for of_group in wants_of(groups, brokers)[:, :, 0].tolist()
    ]

    def work() -> None:
        for rows in asked:
            quota = Rates(sum(row.wanted.messages for row in rows) // 2)
            allocate(policy, quota, rows, floor_ppm=FLOOR_PPM)

    return best_s(work, REPEATS_OF_OBJECTS)


def one_group() -> dict[str, float]:
    """Microseconds to share one group: by max-min over some brokers, by each policy over ten."""
    figures = {}
    for brokers in (3, 10, 100):
        took_s = objects_s(GROUPS_A_PASS, brokers, SharePolicyName.MAX_MIN)
        figures[f"max_min_{brokers}_brokers_us"] = round(took_s / GROUPS_A_PASS * 1e6, 1)
    for policy in SharePolicyName:
        if policy is not SharePolicyName.MAX_MIN:
            took_s = objects_s(GROUPS_A_PASS, 10, policy)
            figures[f"{policy.name.lower()}_10_brokers_us"] = round(took_s / GROUPS_A_PASS * 1e6, 1)
    for dimensions, name in ((1, "one"), (2, "two")):
        took_s = columns_s(1, 3, dimensions=dimensions)
        figures[f"one_group_{name}_us"] = round(took_s * 1e6, 1)
    return figures


def by_usage() -> dict[str, float]:
    """Microseconds a group under PIP-82's policies, `GROUPS_A_PASS` groups of 20 brokers at once and one after the other."""
    used = wants_of(GROUPS_A_PASS, 20)[:, :, :1]
    quota = used.sum(axis=1)
    figures = {}
    for policy in USAGE_POLICIES:
        together_s = best_s(lambda: share_by_usage(policy, quota, used, FLOOR_PPM))  # noqa: B023
        alone_s = best_s(lambda: share_by_usage(policy, quota[:1], used[:1], FLOOR_PPM))  # noqa: B023
        name = policy.name.lower()
        figures[f"{name}_together_us"] = round(together_s / GROUPS_A_PASS * 1e6, 2)
        figures[f"{name}_alone_us"] = round(alone_s * 1e6, 1)
    return figures


def recompute() -> dict[str, float]:
    """Everything anew: as columns, as objects, and numpy's sort of as many rows."""
    wants = wants_of(GROUPS, BROKERS)[:, :, 0].copy()
    sort_s = best_s(lambda: np.sort(wants, axis=1))
    objects = objects_s(GROUPS_A_PASS, BROKERS, SharePolicyName.MAX_MIN) * GROUPS / GROUPS_A_PASS
    figures: dict[str, float] = {"recompute_groups": GROUPS, "recompute_brokers": BROKERS}
    for dimensions, name in ((1, "one"), (2, "two")):
        took_s = columns_s(GROUPS, BROKERS, dimensions=dimensions)
        many_s = columns_s(GROUPS // 5, MANY_BROKERS, dimensions=dimensions)
        figures |= {
            f"recompute_{name}_ms": round(took_s * 1000, 2),
            f"recompute_{name}_rows_per_s": round(GROUPS * BROKERS / took_s),
            f"recompute_{name}_to_numpy_sort": round(took_s / sort_s, 1),
            f"many_brokers_{name}_rows_per_s": round(GROUPS // 5 * MANY_BROKERS / many_s),
        }
        for times in (2, 4):
            more_s = columns_s(times * GROUPS, BROKERS, dimensions=dimensions)
            figures[f"recompute_{name}_{times}x"] = round(more_s / took_s, 2)
    return figures | {
        "objects_ms": round(objects * 1000, 1),
        "numpy_sort_ms": round(sort_s * 1000, 3),
    }


def measure() -> dict[str, float]:
    """All figures."""
    return one_group() | by_usage() | recompute()


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
        print(f"{name:32} {value:>12,}")


if __name__ == "__main__":
    main()
