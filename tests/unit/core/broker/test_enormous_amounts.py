"""Callers may ask for any amount, and clocks may show anything: every number is told within its bound.

Not covered: groups with quotas, where such a request is refused as too large (test_limiter.py); any
sequence of such requests (tests/property/test_core_fuzz.py).
"""

from collections.abc import Iterable

import numpy as np
import pytest

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Publish
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import LevelState
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.precision import rounded
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import (
    COUNT_MAX,
    MILLI,
    NS_PER_MS,
    QUOTA_MAX,
    RATE_MAX,
    WAIT_MS_MAX,
    Kind,
    Nanos,
    Pair,
)
from rgd.wire.codec import decode, encode
from rgd.wire.log_records import LogEncoder
from tests.unit.core.values import BUCKETS

HELD = Pair(COUNT_MAX, COUNT_MAX)


class House:
    """One broker that hears itself, every word written and read."""

    def __init__(self) -> None:
        self.now = Nanos(0)
        self.broker = Broker(BrokerSettings(Sender("b1", 1)), self.now)
        self.encoder = LogEncoder()
        gold = Limit(Rates(1000))
        groups = {
            "free": Group("free"),
            "gold": Group("gold", gold),
            "blocked": Group("blocked", blocked=True),
            "shadow": Group("shadow", gold, shadow=True),
        }
        self._carry_out(self.broker.handle(PoliciesChanged(self.now, PolicySnapshot(groups))))
        self._carry_out(self.broker.handle(Started(self.now)))

    def pass_ms(self, milliseconds: int) -> None:
        self.now = Nanos(self.now + milliseconds * NS_PER_MS)
        while (wake_at := self.broker.wake_at) is not None and wake_at <= self.now:
            self._carry_out(self.broker.handle(Woken(self.now)))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self.encoder.encode(effect.record)
            elif isinstance(effect, Publish):
                heard = decode(encode(effect.message))
                self._carry_out(self.broker.handle(MessageReceived(self.now, heard)))


def test_a_caller_that_asks_for_everything_is_told_as_the_most_that_can_be() -> None:
    house = House()
    for step in range(300):
        house.pass_ms(20)
        for kind in Kind:
            for amount in (1, COUNT_MAX):
                held = HELD if step % 7 == 0 else Pair()
                for group in ("free", "gold"):
                    house.broker.limiter.acquire(
                        Request(kind, amount, amount, group=group, attempt=step % 3, held=held),
                        house.now,
                    )
    row = house.broker.usage.rows(GroupKey("free", Kind.PUBLISH))["b1"]
    most = int(rounded(np.array([RATE_MAX]))[0])
    assert row.admitted == (most, most)
    assert row.wanted == (most, most)
    house.broker.validate()


@pytest.mark.parametrize("group", ["blocked", "free", "shadow"])
@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("most", [10**15, COUNT_MAX])
def test_bursts_of_enormous_requests_and_then_of_small_ones_end_no_round(
    group: str, attempt: int, most: int
) -> None:
    house = House()
    for amount in (most, 1, most, 1):
        # So many that the slot in which the small ones begin is open when a round ends.
        for _ in range(29):
            request = Request(messages=amount, bytes=amount, group=group, attempt=attempt)
            house.broker.limiter.acquire(request, house.now)
            house.pass_ms(100)
        for row in house.broker.usage.rows(GroupKey(group, Kind.PUBLISH)).values():
            assert max(*row.wanted, *row.admitted) <= RATE_MAX
    assert house.broker.identity.sequence >= 11
    house.broker.validate()


def test_a_debt_that_takes_ages_to_pay_is_told_as_a_wait_that_fits_64_bits() -> None:
    level = LevelState(Level.BROKER, BUCKETS)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(QUOTA_MAX * MILLI), Nanos(0))
    level.take(10 * QUOTA_MAX, 0)
    level.set_rates(Rates(QUOTA_MAX * MILLI), Rates(1), Nanos(0))
    wait_ms, _ = level.wait(1, 0, Nanos(0))
    assert wait_ms == WAIT_MS_MAX
    assert wait_ms * NS_PER_MS <= COUNT_MAX
