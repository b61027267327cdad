"""What raises inside the broker is an effect, and what it left behind is put right.

Not covered: every place of the core at random, under load (tests/simulation/test_injected_faults.py).
"""

from collections.abc import Callable
from typing import Any

import pytest

from rgd.core.broker.boundary import Part
from rgd.core.broker.effects import Append, Fault, Publish
from rgd.core.broker.mode import Mode
from rgd.core.buckets.decision import Request
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Goodbye, Report
from rgd.core.exchange.suppression import Suppression
from rgd.core.units import Dimension
from tests.unit.core.broker.desk import Desk, Effects, gold, reports
from tests.unit.core.values import TOPIC, key, ms, report, usage

#: Wakes that may be due at one moment: slices, and one after each part that raised.
WAKES_MAX = 10


def boom(*_args: Any, **_kwargs: Any) -> Any:
    raise OverflowError("a number too large")


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    """Raise when all of it is done."""

    def raising(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        boom()

    return raising


def noted(call: Callable[..., Any], calls: list[str], name: str) -> Callable[..., Any]:
    """Tell of each call."""

    def noting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return call(*args, **kwargs)

    return noting


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


def test_a_message_whose_handler_raises_is_a_fault_and_the_next_one_is_taken(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(live.broker.membership, "receive", boom)
        assert Part.MESSAGE in faults(live.hear(report("b2", usage(90)), 2100))
    live.broker.validate()
    live.hear(report("b2", usage(90), sequence=2), 3200)
    assert "b2" in live.broker.usage.rows(key())
    live.broker.validate()


@pytest.mark.parametrize("wrap", [lambda call: boom, after], ids=["before", "after"])
def test_a_share_that_was_not_told_to_its_bucket_is_told_again(
    live: Desk, monkeypatch: pytest.MonkeyPatch, wrap: Callable[[Any], Any]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(live.broker.limiter, "set_share", wrap(live.broker.limiter.set_share))
        live.hear(report("b2", usage(90), full=True), 2100)
    live.run(2100, 4000)
    state = live.broker.limiter.state(key())
    assert state is not None
    assert state.share == live.broker.shares(key())["b1"]
    live.broker.validate()


def test_a_round_that_raises_is_abandoned_and_the_peers_hear_that_we_are_there(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgd.core.demand.table.end_round", boom)
    for at in (3000, 4000, 5000):
        live.ask(1, at - 500)
        live.said.clear()
        effects = wake_until_nothing_is_due(live, at)
        assert faults(effects) == [Part.ROUND]
        assert reports(effects)
        assert not live.broker.rounds.is_ending
        live.read_back(at + 5)
    assert live.broker.rounds.windows_lost == 3
    assert live.believes() is Mode.LIVE
    monkeypatch.undo()
    live.ask(1, 5500)
    (record,) = [
        one.record for one in wake_until_nothing_is_due(live, 6000) if isinstance(one, Append)
    ]
    assert len(record.rows) == 1


@pytest.mark.parametrize(
    ("room", "method"),
    [
        ("exchange_state", "check"),
        ("membership", "check"),
        ("rounds", "begin"),
        ("rounds", "step"),
        ("rounds", "finish"),
        ("rounds", "advertised_at"),
        ("rounds", "early"),
        ("rounds", "recover"),
        ("sharing", "work"),
        ("sharing", "raise_due"),
        ("sharing", "recover"),
        ("limiter", "work"),
        ("limiter", "end_round"),
    ],
)
def test_what_always_raises_keeps_nobody_busy_and_stops_no_other(
    live: Desk, monkeypatch: pytest.MonkeyPatch, room: str, method: str
) -> None:
    monkeypatch.setattr(getattr(live.broker, room), method, boom)
    # Something to do for each: a fault, a newcomer, an answer, an early report, a change of policies.
    live.hear(report("b2", usage(90)), 2100)
    live.broker.publisher.answer_at = live.broker.publisher.alive_at = ms(2200)
    live.broker.rounds.urgent[key()] = None
    live.ask(200, at=2200)
    live.ask(1, at=2200)
    live.wake(2200)
    live.change(gold(50), 2300)
    said = 0
    for at in range(2350, 8000, 50):
        effects = wake_until_nothing_is_due(live, at)
        said += len(reports(effects))
        live.read_back(at)
        live.ask(1, at)
    # One in each of the rounds at least.
    assert said >= 5
    assert live.broker.sequence >= 5


def test_what_always_raises_between_the_parts_of_a_wake_keeps_nobody_busy(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.broker.publisher, "yield_answer", boom)
    met: Effects = ()
    for at in range(2150, 12_150, 50):
        met += wake_until_nothing_is_due(live, at)
        live.read_back(at)
    assert set(faults(met)) == {Part.WOKEN}
    assert len(faults(met)) <= 11
    monkeypatch.undo()
    for at in range(12_150, 18_000, 50):
        wake_until_nothing_is_due(live, at)
        live.read_back(at)
    assert live.believes() is Mode.LIVE
    assert not live.broker.boundary.is_on_hold
    live.broker.validate()


@pytest.mark.parametrize(
    ("room", "method"), [("publisher", "report"), ("publisher", "hello")], ids=["report", "hello"]
)
def test_who_can_say_nothing_at_a_rounds_end_does_the_rest_of_it(
    live: Desk, monkeypatch: pytest.MonkeyPatch, room: str, method: str
) -> None:
    if method == "hello":
        monkeypatch.setattr(live.broker.link, "reached_at", None)
    monkeypatch.setattr(getattr(live.broker, room), method, boom)
    done: list[str] = []
    for part, work in (("slots", "end_round"), ("sharing", "work")):
        owner = getattr(live.broker, part)
        name = f"{part}.{work}"
        monkeypatch.setattr(owner, work, noted(getattr(owner, work), done, name))
    effects = live.wake(3000)
    assert set(faults(effects)) == {Part.ROUND}
    assert done == ["slots.end_round", "sharing.work"]


@pytest.mark.parametrize("where", ["message", "demand"])
def test_a_fault_of_which_no_work_is_due_is_forgotten_after_its_pause(
    live: Desk, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(live.broker.membership, "receive", boom)
        patch.setattr(live.broker.publisher, "report_early_from", boom)
        if where == "message":
            met = live.hear(report("b2"), 2100)
        else:
            live.ask(200, at=2100)
            live.ask(1, at=2100)
            met = live.wake(2100)
    assert where in faults(met)
    for at in range(2150, 4300, 50):
        wake_until_nothing_is_due(live, at)
        live.read_back(at)
    assert not live.broker.boundary.is_on_hold


def test_an_audit_waits_for_the_recovery(live: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.broker.membership, "receive", boom)
    live.hear(report("b2"), 2100)
    # Begun, and not gone on with when the next fault comes, from which there is no recovery yet.
    monkeypatch.setattr(live.broker.sharing, "recover", boom)
    live.hear(report("b2"), 2105)
    for at in (2105, 2150, 2500):
        wake_until_nothing_is_due(live, at)


def test_a_fault_in_each_round_stays_below_what_ends_a_daemon(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.broker.sharing, "work", boom)
    live.hear(report("b2", usage(90)), 2100)
    met: Effects = ()
    for at in range(2150, 12_150, 50):
        met += wake_until_nothing_is_due(live, at)
        live.read_back(at)
    assert 0 < len(faults(met)) <= 11


@pytest.mark.parametrize("room", ["slots", "sharing", "limiter"])
def test_policies_that_cannot_be_put_in_force_are_tried_again_and_those_before_answer_meanwhile(
    live: Desk, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    before, snapshot = live.broker.limiter.snapshot, gold(40)
    method = "set_groups" if room == "slots" else "set_policies"
    with monkeypatch.context() as patch:
        patch.setattr(getattr(live.broker, room), method, boom)
        assert faults(live.change(snapshot, 2100)) == [Part.POLICIES]
        live.run(2100, 2900)
        assert live.broker.limiter.snapshot is before
        assert live.ask(1, 2900)
    live.run(2900, 4000)
    assert live.broker.sharing.snapshot is live.broker.limiter.snapshot is snapshot
    assert live.share().messages == 40_000
    live.broker.validate()


@pytest.mark.parametrize("method", ["begin", "step", "finish"])
def test_who_leaves_says_goodbye_whatever_raises(
    live: Desk, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(live.broker.rounds, method, boom)
    effects = live.stop(2500)
    assert faults(effects)
    assert isinstance(effects[-1], Publish)
    assert isinstance(effects[-1].message, Goodbye)


def test_broken_invariants_are_not_contained(live: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any) -> None:
        raise InvariantBroken("a story")

    monkeypatch.setattr(live.broker.membership, "receive", broken)
    with pytest.raises(InvariantBroken):
        live.hear(report("b2"), 2100)


def test_after_a_fault_what_must_hold_is_checked_at_once_and_the_shares_in_slices(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.hear(report("b2", usage(90)), 2050)
    monkeypatch.setattr(live.broker.membership, "receive", boom)
    live.hear(report("b2"), 2100)
    # Somebody changes the map behind the broker's back.
    live.catch_up()
    live.broker.usage.apply(report("b2", usage(20), sequence=2))
    with pytest.raises(InvariantBroken, match="not the map's share"):
        live.run(2100, 3000)


def test_peers_are_told_everything_again_after_a_round_that_raised(
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
