"""What a round says and logs: each window once, in slices, and no count lost.

Not covered: which changes are worth telling (tests/unit/core/exchange/test_suppression.py), what is
estimated (tests/unit/core/demand), when a round ends (test_broker.py).
"""

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import BacklogAction, Group
from rgd.core.units import Kind, Pair
from tests.unit.core.broker.rounds_house import House, wanted
from tests.unit.core.values import TOPIC, key, ms


def test_a_round_tells_what_was_asked_for_in_it() -> None:
    house = House()
    house.ask(20, at=0)
    house.ask(10, at=500, group="trial")
    gold, trial = house.end(1000)
    assert (gold.group, gold.kind, gold.topics) == ("gold", Kind.PUBLISH, 1)
    assert gold.admitted == gold.wanted == Pair(20_000)
    assert house.logged().admitted_total == house.logged().wanted_total == Pair(20)
    # A single request says nothing of a rate: one in a round.
    assert wanted(trial) == 10
    assert house.told() == {"gold": gold, "trial": trial}


def test_without_requests_nothing_is_advertised_or_logged() -> None:
    house = House()
    assert house.end(1000) == []
    house.ask(0, at=1000)
    assert house.end(2000) == []
    assert [[row.sent for row in record] for record in house.log] == [[], [False]]


def test_what_a_backlog_refused_is_logged_and_is_no_demand() -> None:
    house = House()
    why = Blocked(QuotaType.SIZE, BacklogAction.REFUSE, ms(0), ms(60_000))
    house.limiter.block(TOPIC, why)
    blocked = Request(messages=7, bytes=9, group="gold", topic=TOPIC)
    house.limiter.acquire(blocked, ms(10))
    # Alone it makes no row; the group's next row has it.
    house.end(1000)
    assert len(house.log[-1]) == 0
    house.limiter.acquire(Request(messages=5, group="gold"), ms(1100))
    house.limiter.acquire(blocked, ms(1200))
    house.end(2000)
    row = house.logged()
    assert row.refused_by == (("backlog", Pair(14, 18)),)
    assert (row.refused, row.usage.wanted) == (Pair(), row.usage.admitted)
    house.limiter.acquire(Request(messages=5, group="gold"), ms(2100))
    house.end(3000)
    assert house.logged().refused_by == ()


def test_an_unlimited_rate_is_logged_as_such() -> None:
    house = House(groups={"gold": Group("gold")})
    house.ask(1, at=0)
    house.end(1000)
    assert (house.logged().share, house.logged().quota) == ((None, None), (None, None))


# Early reports.


def test_refusals_that_were_not_advertised_are_reported_early() -> None:
    house = House()
    house.ask(100, at=0)
    assert house.early(50) == []
    house.ask(1, at=60)
    assert house.urgent() == [key()]
    (row,) = house.early(100)
    assert (row.group, wanted(row)) == ("gold", 1010)
    assert house.rounds.urgent == {}
    assert house.told() == {"gold": row}
