"""A link that delays, drains, or comes and goes: the mode changes once, and not with each message.

Not covered: several brokers on such a link (tests/simulation/test_delayed_link.py).
"""

import pytest

from rgd.core.broker.effects import Alarm, AlarmCode, Publish
from rgd.core.broker.mode import Mode
from rgd.core.exchange.messages import Hello, Message, Report
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk, Effects
from tests.unit.core.values import report, usage


def changes(effects: Effects) -> list[AlarmCode]:
    """What it says of the link."""
    told = [effect.code for effect in effects if isinstance(effect, Alarm)]
    return [code for code in told if code in (AlarmCode.ISOLATED, AlarmCode.REJOINED)]


def hellos(effects: Effects) -> int:
    """How often it says hello."""
    said = [effect.message for effect in effects if isinstance(effect, Publish)]
    return sum(isinstance(message, Hello) for message in said)


def delayed(desk: Desk, until: float) -> list[tuple[float, Message]]:
    """What it said, and when, while nothing came back."""
    desk.hear(report("b2", usage(500)), 2100)
    sent: list[tuple[float, Message]] = []
    now = 2100.0
    while desk.wake_at is not None and max(now, desk.wake_at) <= until:
        now = max(now, desk.wake_at)
        desk.said.clear()
        desk.wake(now)
        sent += [(now, message) for message in desk.said]
    return sent


@pytest.mark.parametrize(("until", "holds"), [(10_000, 9), (20_000, 2), (62_000, 2)])
def test_a_link_that_lets_old_messages_go_at_once_changes_the_mode_once(
    seat: Seat, until: int, holds: int
) -> None:
    live = seat(isolation_hold_rounds=holds, expiry_rounds=9)
    live.go_live()
    sent = delayed(live, until)
    assert live.believes() is (Mode.HOLDING if holds == 9 else Mode.EQUAL)
    effects: list[object] = []
    for place, (_, message) in enumerate(sent):
        at = until + 1 + place / 10
        effects += live.hear(message, at)
        effects += live.wake(at)
    told: Effects = tuple(effects)  # type: ignore[arg-type]
    assert changes(told) == [AlarmCode.REJOINED]
    assert hellos(told) == 1


def test_an_old_message_does_not_end_being_cut_off(live: Desk) -> None:
    sent = delayed(live, 20_000)
    assert live.believes() is Mode.EQUAL
    for place, (said_at, message) in enumerate(sent):
        if said_at < 18_000:
            assert live.hear(message, 20_001 + place / 10) == ()
    assert live.believes() is Mode.EQUAL


def test_a_link_that_takes_as_long_as_our_patience_changes_the_mode_once_a_round_at_most(
    live: Desk,
) -> None:
    live.hear(report("b2", usage(500)), 2100)
    under_way: list[tuple[float, Message]] = []
    effects: list[object] = []
    for at in range(2110, 32_110, 10):
        live.said.clear()
        effects += live.wake(at)
        # 1090 ms, and every now and then 1110.
        late = 1090 + (at % 50 == 0) * 20
        under_way += [(at + late, message) for message in live.said]
        while under_way and under_way[0][0] <= at:
            live.said.clear()
            effects += live.hear(under_way.pop(0)[1], at)
            under_way += [(at + late, message) for message in live.said]
    told: Effects = tuple(effects)  # type: ignore[arg-type]
    assert changes(told).count(AlarmCode.REJOINED) <= 31
    assert hellos(told) <= 31


def test_old_messages_that_come_back_have_everything_told_once_and_not_for_each(
    live: Desk,
) -> None:
    live.ask(50, at=2150)
    sent = delayed(live, 20_000)
    # Of every other one nothing comes back: a gap before each.
    live.said.clear()
    for place, (_, message) in enumerate(sent[::2]):
        at = 20_001 + place / 10
        live.hear(message, at)
        live.wake(at)
    full = [message for message in live.said if isinstance(message, Report) and message.full]
    assert len(full) <= 1
