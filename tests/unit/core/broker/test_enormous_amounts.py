"""Callers may ask for any amount, and clocks may show anything: every number is told within its bound.

Not covered: groups with quotas, where such a request is refused as too large (test_limiter.py); any
sequence of such requests (tests/property/test_core_fuzz.py).
"""

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import LevelState
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Rates
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_MS, QUOTA_MAX, WAIT_MS_MAX, Kind, Nanos, Pair
from tests.unit.core.broker.own_reader import OwnReader
from tests.unit.core.values import BUCKETS, ms


def test_a_debt_that_takes_ages_to_pay_is_a_wait_that_fits_64_bits() -> None:
    level = LevelState(Level.BROKER, BUCKETS)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(QUOTA_MAX * MILLI), Nanos(0))
    level.take(10 * QUOTA_MAX, 0)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(1), Nanos(0))
    wait_ms, _ = level.wait(1, 0, Nanos(0))
    assert wait_ms == WAIT_MS_MAX
    assert wait_ms * NS_PER_MS <= COUNT_MAX


def test_what_is_granted_and_given_back_beyond_what_a_double_can_say_ends_nothing() -> None:
    house = OwnReader(BrokerSettings(Sender("b1", 1)))
    house.change(gold=None)
    house.start()
    house.ask(100)
    house.wait(6000)
    name = (Kind.PUBLISH, "gold", None, None, None)
    house.ask(COUNT_MAX)
    house.broker.limiter.settle(name, Pair(COUNT_MAX, 0), ms(house.now))
    house.wait(3000)
