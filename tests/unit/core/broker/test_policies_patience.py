"""How long peers may have other policies before anybody is told, where each looks at its own time.

Not covered: the alarm itself, and no patience at all (test_membership.py).
"""

from rgd.core.broker.effects import Alarm, AlarmCode
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk
from tests.unit.core.values import report

PATIENCE_MS = 300
DIFFER = Alarm(AlarmCode.POLICIES_DIFFER, "b2")


def patient(seat: Seat) -> Desk:
    """A live broker with policies of hash 7, which hears b2."""
    desk = seat(policies_patience_ns=PATIENCE_MS * 1_000_000)
    desk.go_live()
    desk.change(desk.broker.sharing.snapshot, at=2010, policies_hash=7)
    desk.hear(report("b2", policies_hash=7), 2100)
    return desk


def alarms(desk: Desk, *reports: tuple[int, int]) -> list[int]:
    """The times at which the alarm rose, of reports of b2 as (ms, hash)."""
    return [
        at
        for number, (at, told) in enumerate(reports, start=2)
        if DIFFER in desk.hear(report("b2", sequence=number, policies_hash=told), at)
    ]


def test_a_difference_that_stays_raises_one_alarm(seat: Seat) -> None:
    desk = patient(seat)
    assert alarms(desk, (2200, 8), (2400, 8), (2500, 8), (2600, 8)) == [2500]
    assert desk.broker.membership.differing == {"b2"}
