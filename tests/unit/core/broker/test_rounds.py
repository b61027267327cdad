"""What a round says and logs: each window once, in slices, and no count lost.

Not covered: which changes are worth telling (tests/unit/core/exchange/test_suppression.py), what is
estimated (tests/unit/core/demand), when a round ends (test_broker.py).
"""

from dataclasses import replace

import pytest

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.bounds import BOUNDS
from rgd.core.buckets.decision import Request
from rgd.core.exchange.rows import ShareRow
from rgd.core.policies.model import BacklogAction, Group, Limit, SharePolicyName
from rgd.core.units import Kind, Pair
from tests.unit.core.broker.rounds_house import GROUPS, MANY, SETTINGS, House, wanted
from tests.unit.core.values import TOPIC, key, ms, rates


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


def test_a_rate_is_that_of_the_newest_flow_and_the_log_has_what_was_counted() -> None:
    house = House()
    for at in range(0, 1000, 100):
        house.ask(2, at=at)
    house.end(1000)
    for at in range(1000, 2000, 100):
        house.ask(2 if at < 1500 else 8, at=at)
    (row,) = house.end(2000)
    # The step of 1500 is believed as if it had been there all the time.
    assert wanted(row) == pytest.approx(80, rel=0.01)
    assert house.logged().usage.wanted == house.logged().usage.admitted == Pair(50_000)


def test_nothing_asked_is_nothing_told_or_logged() -> None:
    house = House()
    assert house.end(1000) == []
    house.ask(0, at=1000)
    assert house.end(2000) == []
    assert [[row.sent for row in record] for record in house.log] == [[], [False]]


def test_a_round_is_logged_with_what_was_allowed_in_it() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(30, at=0)
    house.ask(30, at=0)
    house.end(1000)
    row = house.logged()
    assert row == ShareRow(
        usage=row.usage,
        share=(100_000, None),
        quota=(100_000, None),
        policy=SharePolicyName.MAX_MIN,
        refused=Pair(60),
        sent=True,
        refused_by=(("resource_group", Pair(60)),),
        admitted_total=Pair(100),
        wanted_total=Pair(160),
    )
    # Retries or not: nobody said, so what is wanted is what was asked in all.
    assert (row.usage.admitted, row.usage.wanted) == (Pair(100_000), Pair(160_000))


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


def test_what_each_level_refused_is_logged_once() -> None:
    house = House()
    house.ask(100, at=0)
    for at in (100, 1100):
        house.ask(100, at=at)
        house.ask(100, at=at + 1)
        house.end(at + 900)
    refused = [[row.refused_by for row in record] for record in house.log]
    asked = 500
    assert sum(pair.messages for (((_, pair),),) in refused) == asked - house.granted
    house.ask(1, at=2900)
    house.end(3000)
    assert house.logged().refused_by == ()


def test_a_round_is_logged_with_the_policy_of_the_group() -> None:
    house = House(groups=GROUPS | {"third": Group("third", policy=SharePolicyName.STEAL)})
    house.ask(5, at=500)
    house.ask(5, at=500, group="third")
    house.end(1000)
    assert house.logged().policy is SharePolicyName.MAX_MIN
    assert house.logged("third").policy is SharePolicyName.STEAL


def test_an_unlimited_rate_is_logged_as_such() -> None:
    house = House(groups={"gold": Group("gold")})
    house.ask(1, at=0)
    house.end(1000)
    assert (house.logged().share, house.logged().quota) == ((None, None), (None, None))


def test_a_row_that_is_held_back_is_logged_as_such_and_counted() -> None:
    house = House()
    for start in (0, 1000):
        house.ask(20, at=start)
        house.end(start + 1000)
    assert not house.logged().sent
    assert house.logged().admitted_total == Pair(40)
    assert house.rounds.rows_suppressed == 1


# Idle.


def test_an_idle_group_is_told_and_logged_as_zero_once_with_its_true_totals() -> None:
    house = House()
    for start in (0, 1000, 2000):
        house.ask(20, at=start)
        house.end(start + 1000)
    (idle,) = house.end(4000)
    assert idle.is_idle
    logged = house.logged()
    assert (logged.usage, logged.sent, idle.topics) == (idle, True, 0)
    assert (logged.admitted_total, logged.wanted_total) == (Pair(60), Pair(60))
    assert house.told() == {}
    assert house.end(5000) == []
    assert list(house.log[-1]) == []


def test_a_group_that_was_deleted_is_told_as_zero_and_not_logged() -> None:
    house = House()
    house.ask(20, at=0)
    house.end(1000)
    house.change({}, at=1000)
    (idle,) = house.end(2000)
    assert idle.is_idle
    assert list(house.log[-1]) == []
    assert house.told() == {}
    assert house.rounds.suppression.hash_of() == 0
    assert house.end(3000) == []


def test_a_group_that_was_deleted_and_is_back_is_estimated_afresh() -> None:
    house = House(groups={"gold": Group("gold", Limit(rates(10_000)))})
    for round_ in range(8):
        # Noise that is large enough to hide what comes after.
        for at in range(0, 1000, 50):
            house.ask(40 if round_ % 2 else 80, at=1000 * round_ + at)
        house.end(1000 * (round_ + 1))
    house.change({}, at=8000)
    house.end(9000)
    house.change(GROUPS, at=9000)
    for at in range(9000, 10_000, 50):
        house.ask(1, at=at)
    (row,) = house.end(10_000)
    assert wanted(row) == pytest.approx(20, rel=0.1)


# Early reports.


def test_what_was_refused_and_not_told_is_called_out_and_told_early() -> None:
    house = House()
    house.ask(100, at=0)
    assert house.early(50) == []
    house.ask(1, at=60)
    assert list(house.rounds.urgent) == [key()]
    (row,) = house.early(100)
    assert (row.group, wanted(row)) == ("gold", 1010)
    assert house.rounds.urgent == {}
    assert house.told() == {"gold": row}


def test_an_early_report_counts_nothing() -> None:
    """The windows go on: the round logs each count once."""
    house = House()
    house.ask(100, at=0)
    house.ask(30, at=0, size=70)
    assert len(house.early(100)) == 1
    for at in (605, 610):
        house.ask(50, at=at, size=10)
    house.early(700)
    house.ask(10, at=900)
    house.end(1000)
    assert house.logged().admitted_total == Pair(house.granted) == Pair(110)
    assert house.logged().usage.admitted == Pair(110_000)
    assert house.logged().refused == Pair(130, 90)


def test_an_early_report_tells_of_its_groups_alone() -> None:
    house = House()
    house.ask(20, at=0, group="trial")
    house.ask(100, at=0)
    house.ask(1, at=0)
    assert [row.group for row in house.early(200)] == ["gold"]
    assert {row.group: wanted(row) for row in house.end(1000)}["trial"] == 20


def test_the_first_moments_of_a_group_are_told_once_more() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(1, at=0)
    told = [house.early(10)]
    follows_up = [house.rounds.follows_up]
    house.ask(1, at=200)
    for at in (200, 300):
        told.append(house.early(at))
        follows_up.append(house.rounds.follows_up)
    assert follows_up == [True, False, False]
    (first,), (again,), nothing = told
    assert wanted(again) < wanted(first)
    assert nothing == []


def test_the_first_moments_are_not_told_once_more_after_the_round_has_ended() -> None:
    house = House()
    house.ask(100, at=900)
    house.ask(1, at=900)
    house.early(950)
    house.end(1000)
    assert not house.rounds.follows_up


def test_more_that_is_urgent_than_a_slice_is_told_in_several() -> None:
    house = House(groups=MANY)
    for name in MANY:
        house.ask(1000, at=0, group=name)
        house.ask(1, at=0, group=name)
    first = house.early(100)
    assert 0 < len(first) <= BOUNDS.rounds.slice_groups
    assert house.rounds.follows_up
    told = {row.group for row in first}
    for at in range(200, 3000, 100):
        told |= {row.group for row in house.early(at)}
    assert told == set(MANY)


def test_an_early_report_is_logged_as_sent_even_if_the_round_adds_nothing_to_it() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(0, at=10)
    house.rounds.urgent[key()] = None
    (row,) = house.early(1000)
    assert wanted(row) == 100
    assert house.end(1000) == []
    assert house.logged().sent
    assert house.logged().admitted_total == Pair(100)
    assert house.rounds.rows_suppressed == 0
    # Of that round alone.
    house.ask(100, at=1000)
    house.end(2000)
    assert not house.logged().sent


def test_an_early_report_of_nothing_says_nothing() -> None:
    house = House()
    house.ask(0, at=0)
    house.rounds.urgent.update({key(): None, key("never-asked"): None})
    assert house.early(200) == []
    assert house.rounds.urgent == {}
    assert house.told() == {}


def test_after_a_round_a_refusal_is_called_out_again_unless_the_peers_know() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(1, at=0)
    gold = house.limiter.state(key())
    assert gold is not None
    house.end(1000)
    assert gold.reported
    house.end(2000)
    assert not gold.reported


def test_a_jump_is_called_out_by_what_the_peers_were_told_last() -> None:
    house = House()
    for at in range(0, 1000, 100):
        house.ask(5, at=at)
    house.end(1000)
    house.rounds.urgent.clear()
    for at in range(1000, 1400, 50):
        house.ask(100, at=at)
    assert list(house.rounds.urgent) == [key()]


def steady(house: House, since: int, until: int) -> None:
    """Ask for 20 a second, evenly."""
    for at in range(since, until, 100):
        house.ask(2, at=at)


def test_everything_is_told_anyway_once_in_so_many_rounds() -> None:
    house = House(replace(SETTINGS, full_every_rounds=3))
    told = []
    for start in range(0, 10_000, 1000):
        steady(house, start, start + 1000)
        told.append(len(house.end(start + 1000)))
    assert told[0] == 1
    assert told[1:4].count(1) == 1
    assert told[1:4] == told[4:7] == told[7:10]


def test_an_early_report_tells_nothing_anyway() -> None:
    house = House(replace(SETTINGS, full_every_rounds=1))
    for start in range(0, 3000, 1000):
        steady(house, start, start + 1000)
        assert len(house.end(start + 1000)) == 1
    steady(house, 3000, 3600)
    house.rounds.urgent[key()] = None
    assert house.early(3600) == []


def test_a_refusal_after_the_last_slot_of_a_flow_of_retries_is_no_fault_of_the_next_round() -> None:
    house = House()
    # The slot of the retry is the last one: the refusal follows it too soon for another.
    for attempt, at in ((2, 860), (0, 940)):
        request = Request(
            messages=100, group="gold", topic=TOPIC, attempt=attempt, partial=attempt == 0
        )
        house.limiter.acquire(request, ms(at))
        house.rounds.tick(ms(at))
    house.end(1000)
    house.end(2000)
    assert house.logged().usage.wanted == Pair()
