"""What raises inside the broker is an effect, and what it left behind is put right.

Not covered: every place of the core at random, under load (tests/simulation/test_injected_faults.py).
"""

from collections.abc import Callable
from typing import Any

import pytest

from rgd.core.broker.broker import FAULTY_WAKES_MAX
from rgd.core.broker.effects import Alarm, AlarmCode, Fault
from rgd.core.buckets.decision import Request
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Report
from rgd.core.exchange.suppression import Suppression
from rgd.core.units import Dimension
from tests.unit.core.broker.desk import Desk, Effects, reports
from tests.unit.core.values import TOPIC, key, ms, report

#: Wakes that may be due at one moment.
WAKES_MAX = 10


def boom(*_args: Any, **_kwargs: Any) -> Any:
    raise OverflowError("a number too large")


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    """Raise when all of it is done."""

    def raising(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        boom()

    return raising


def faults(effects: Effects) -> list[str]:
    return [effect.where for effect in effects if isinstance(effect, Fault)]


def wake_until_nothing_is_due(desk: Desk, at: float) -> Effects:
    effects: Effects = ()
    for _ in range(WAKES_MAX):
        assert desk.wake_at is not None
        if desk.wake_at > at:
            return effects
        effects += desk.wake(at)
    raise AssertionError(f"still due at {desk.wake_at}")


@pytest.fixture
def live() -> Desk:
    desk = Desk()
    desk.go_live()
    desk.share()
    return desk


@pytest.mark.parametrize(
    ("room", "method"),
    [("membership", "check"), ("publisher", "yield_answer"), ("sharing", "raise_due")],
)
def test_a_broker_whose_wakes_always_raise_is_not_busy_and_ends_before_its_peers_take_its_shares(
    live: Desk, monkeypatch: pytest.MonkeyPatch, room: str, method: str
) -> None:
    monkeypatch.setattr(getattr(live.broker, room), method, boom)
    met: Effects = ()

    def live_on() -> None:
        nonlocal met
        for at in range(2150, 2000 + live.broker.settings.expiry_rounds * 1000, 50):
            met += wake_until_nothing_is_due(live, at)
            live.read_back(at)

    with pytest.raises(InvariantBroken, match="in a row raised"):
        live_on()
    assert faults(met) == ["Woken"] * (FAULTY_WAKES_MAX - 1)


def test_what_a_wake_did_before_it_raised_holds(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarm = Alarm(AlarmCode.NAME_CONFLICT)
    monkeypatch.setattr(live.broker.own_name, "check", lambda _now: [alarm])
    monkeypatch.setattr(live.broker.membership, "check", boom)
    first, second = live.wake(2100)
    assert first == alarm
    assert isinstance(second, Fault)


def test_after_a_fault_what_cannot_be_derived_is_checked(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.broker.membership, "receive", boom)
    monkeypatch.setattr(live.broker.usage._rows, "_used", 7)  # noqa: SLF001 -- as a fault may leave it
    with pytest.raises(InvariantBroken):
        live.hear(report("b2"), 2100)


def test_broken_invariants_are_not_contained(live: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any) -> None:
        raise InvariantBroken("a story")

    monkeypatch.setattr(live.broker.membership, "receive", broken)
    with pytest.raises(InvariantBroken):
        live.hear(report("b2"), 2100)


def test_peers_receive_everything_again_after_a_round_that_raised(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.ask(1, 2500)
    with monkeypatch.context() as patch:
        patch.setattr(Suppression, "pick", after(Suppression.pick))
        wake_until_nothing_is_due(live, 3000)
    said: list[Report] = []
    for at in range(3050, 3600, 50):
        said += reports(wake_until_nothing_is_due(live, at))
    assert [one.full for one in said] == [True]
    assert len(said[0].rows) == 1


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_request_that_raises_takes_nothing(
    live: Desk, monkeypatch: pytest.MonkeyPatch, *, is_partial: bool
) -> None:
    state = live.broker.limiter.state(key())
    assert state is not None
    before = state.tokens(Dimension.MESSAGES, ms(2100))
    method = "refuse" if is_partial else "note"
    monkeypatch.setattr(type(state.counters), method, boom)
    # More than there is, where a part is welcome: granted in part, and the rest counted as refused.
    request = Request(
        messages=900 if is_partial else 3, group="gold", topic=TOPIC, partial=is_partial
    )
    with pytest.raises(OverflowError):
        live.broker.limiter.acquire(request, ms(2100))
    assert state.tokens(Dimension.MESSAGES, ms(2100)) == before
