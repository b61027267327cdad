"""Callers may ask for any amount, and clocks may show anything: every number is told within its bound.

Not covered: groups with quotas, where such a request is refused as too large (test_limiter.py); any
sequence of such requests (tests/property/test_core_fuzz.py).
"""

from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import LevelState
from rgd.core.policies.model import Rates
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_MS, QUOTA_MAX, WAIT_MS_MAX, Nanos
from tests.unit.core.values import BUCKETS


def test_a_debt_that_takes_ages_to_pay_is_a_wait_that_fits_64_bits() -> None:
    level = LevelState(Level.BROKER, BUCKETS)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(QUOTA_MAX * MILLI), Nanos(0))
    level.take(10 * QUOTA_MAX, 0)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(1), Nanos(0))
    wait_ms, _ = level.wait(1, 0, Nanos(0))
    assert wait_ms == WAIT_MS_MAX
    assert wait_ms * NS_PER_MS <= COUNT_MAX
