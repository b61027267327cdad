"""A broker that nobody has told any policies yet: what it answers, counts, logs and says of itself.

Not covered: how the door says it (tests/unit/adapters/http/test_unknown.py), and when policies are known
(tests/unit/app).
"""

import pytest

from rgd.app.health import health
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect
from rgd.core.broker.events import PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, PoliciesUnknown, Request
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.policies.model import OnUnknown
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT
from rgd.core.units import NS_PER_S, Nanos
from tests.unit.core.broker.desk import gold

ASKED = Request(namespace="acme/orders")
NAMED = Request(group="gold")


def blind(on_unknown: OnUnknown) -> Broker:
    """A broker that has started and knows no policies."""
    broker = Broker(BrokerSettings(Sender("b1", 1), on_unknown=on_unknown), Nanos(0))
    broker.handle(PoliciesChanged(Nanos(0), EMPTY_SNAPSHOT, known=False))
    broker.handle(Started(Nanos(0)))
    return broker


def wake(broker: Broker, seconds: int) -> list[Effect]:
    """Wake it until a moment."""
    effects: list[Effect] = []
    now = Nanos(seconds * NS_PER_S)
    while (due := broker.wake_at) is not None and due <= now:
        effects += broker.handle(Woken(now))
    return effects


def records(effects: list[Effect]) -> list[RoundRecord]:
    return [effect.record for effect in effects if isinstance(effect, Append)]


@pytest.mark.parametrize("asked", [ASKED, NAMED])
def test_deny_refuses_with_a_retry_after_and_allow_grants_ungoverned(asked: Request) -> None:
    denied, allowed = (blind(each).limiter.acquire(asked, Nanos(1)) for each in OnUnknown)
    assert isinstance(denied, PoliciesUnknown)
    assert denied.retry_after_ms > 0
    assert allowed == Decision(granted=True, messages=1, bytes=0, governed=False)


def test_both_are_in_the_rounds_record_and_once() -> None:
    for on_unknown, counted in ((OnUnknown.DENY, (0, 0, 3)), (OnUnknown.ALLOW, (3, 3, 0))):
        broker = blind(on_unknown)
        for _ in range(3):
            broker.limiter.acquire(ASKED, Nanos(1))
        one, *more = records(wake(broker, 1))
        assert (one.ungoverned, one.unknown_granted, one.unknown_refused) == counted
        assert one.policies_hash == 0
        assert not more
        # A round in which nobody asked leaves nothing.
        assert records(wake(broker, 2)) == []


def test_a_round_of_requests_that_no_limit_applies_to_is_recorded_too() -> None:
    broker = blind(OnUnknown.DENY)
    broker.handle(PoliciesChanged(Nanos(1), gold(), 7))
    broker.limiter.acquire(ASKED, Nanos(2))
    (one,) = records(wake(broker, 1))
    assert (one.ungoverned, one.unknown_granted, one.policies_hash) == (1, 0, 7)


def test_a_broker_that_denies_is_not_ready_and_says_why() -> None:
    denying, allowing = blind(OnUnknown.DENY), blind(OnUnknown.ALLOW)
    for broker, ready, word in ((denying, False, "refused"), (allowing, True, "granted")):
        wake(broker, 3)
        state = health(broker, is_draining=False, notes=())
        assert state.ready is ready
        assert (
            f"no policies are known: every request is {word} (policies.unknown)" in state.degraded
        )
        broker.handle(PoliciesChanged(Nanos(3 * NS_PER_S), gold(), 7))
        assert health(broker, is_draining=False, notes=()).ready
