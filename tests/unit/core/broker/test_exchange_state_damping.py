"""A link that delays, drains, or comes and goes: the mode changes once, and not with each message.

Not covered: several brokers on such a link (tests/simulation/test_delayed_link.py).
"""

from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.broker.mode import Mode
from rgd.core.exchange.messages import Message
from tests.unit.core.broker.desk import Desk, Effects
from tests.unit.core.values import report, usage


def changes(effects: Effects) -> list[AlarmCode]:
    """What it says of the link."""
    told = [effect.code for effect in effects if isinstance(effect, Alarm)]
    return [code for code in told if code in (AlarmCode.ISOLATED, AlarmCode.REJOINED)]


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


def test_an_old_message_does_not_end_being_cut_off(live: Desk) -> None:
    sent = delayed(live, 20_000)
    assert live.believes() is Mode.EQUAL
    for place, (said_at, message) in enumerate(sent):
        if said_at < 18_000:
            assert live.hear(message, 20_001 + place / 10) == ()
    assert live.believes() is Mode.EQUAL
