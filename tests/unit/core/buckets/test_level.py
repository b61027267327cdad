"""One level of the chain: two buckets that decide together.

Not covered: several levels (test_limiter.py), one bucket by itself (test_bucket.py).
"""

from rgd.core.buckets.decision import Level, TooLarge
from rgd.core.buckets.level import LevelState
from rgd.core.policies.model import Rates
from rgd.core.units import Dimension, Nanos, Pair
from tests.support.cases import cases
from tests.unit.core.values import BUCKETS, rates

MESSAGES, BYTES = Dimension.MESSAGES, Dimension.BYTES
START = Nanos(0)


def level(quota: Rates, share: Rates | None = None) -> LevelState:
    state = LevelState(Level.TOPIC, BUCKETS)
    state.set_rates(quota, quota if share is None else share, START)
    return state


@cases(
    "cost, too_large",
    {
        "just-not": (Pair(1000, 10_000), None),
        "messages-first": (Pair(1001, 10_001), TooLarge(Level.TOPIC, None, MESSAGES, 1000)),
        "bytes": (Pair(1, 10_001), TooLarge(Level.TOPIC, None, BYTES, 10_000)),
    },
)
def test_ten_seconds_of_the_whole_quota_is_the_most(cost: Pair, too_large: TooLarge | None) -> None:
    # Of the quota: the share, which is a tenth of it, has no say in it.
    assert level(rates(100, 1000), share=rates(10, 100)).too_large(*cost) == too_large
