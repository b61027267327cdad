"""Where nothing is limited a caller may ask for any amount: it is told as the most that can be told.

Not covered: groups with quotas, where such a request is refused as too large (test_limiter.py).
"""

from collections.abc import Iterable

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Publish
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import Speaker
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.units import COUNT_MAX, NS_PER_MS, RATE_MAX, Kind, Nanos, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.record import encode_record

HELD = Pair(COUNT_MAX, COUNT_MAX)


class House:
    """One broker that hears itself, every word written and read."""

    def __init__(self) -> None:
        self.now = Nanos(0)
        self.broker = Broker(BrokerSettings(Speaker("b1", 1)), self.now)
        groups = {"free": Group("free"), "gold": Group("gold", Limit(Rates(1000)))}
        self._carry_out(self.broker.handle(PoliciesChanged(self.now, PolicyBook(groups))))
        self._carry_out(self.broker.handle(Started(self.now)))

    def pass_ms(self, milliseconds: int) -> None:
        self.now = Nanos(self.now + milliseconds * NS_PER_MS)
        while (wake_at := self.broker.wake_at) is not None and wake_at <= self.now:
            self._carry_out(self.broker.handle(Woken(self.now)))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                encode_record(effect.record)
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
    assert row.admitted == (RATE_MAX, RATE_MAX)
    assert row.wanted == (RATE_MAX, RATE_MAX)
    house.broker.validate()
