"""Which reports count, for how long, how many; and when checks run. Not what a check finds."""

from dataclasses import replace

import pytest

from rgd.core.backlog.model import Source
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.bounds import BOUNDS
from rgd.core.policies.model import BacklogQuota
from tests.unit.core.backlog.topics import EU, EVICT, House, ledger, report, s, size_quota, sub

FULL = report(sub("a", (1, 0), 60))
POLLED = replace(FULL, source=Source.POLLED)


def topic(number: int) -> str:
    return f"{EU}-{number}"


def test_a_pushed_report_counts_before_a_polled_one_until_it_is_stale() -> None:
    house = House(topics={EU: size_quota(50, EVICT)})
    house.report(POLLED)
    house.check()
    assert house.evicts()
    house.report(FULL, at=1)
    # What was to be evicted is its broker's to evict now, once a check has named it.
    assert not house.evicts()
    house.report(POLLED, at=181)
    assert house.state().report.source is Source.PUSHED
    house.report(POLLED, at=182)
    assert house.state().report.source is Source.POLLED


def test_a_report_that_is_not_repeated_is_dropped() -> None:
    house = House(topics={EU: size_quota(50, EVICT)})
    house.report(FULL)
    house.check(at=180)
    assert len(house.store) == 1
    house.check(at=181)
    assert (len(house.store), house.store.expired, house.store.evicting()) == (0, 1, [])


def test_dropped_topics_leave_nothing_behind() -> None:
    house = House(namespaces={"acme/orders": size_quota(50, EVICT)})
    partition = f"{EU}-partition-0"
    house.report(replace(FULL, topic=partition), replace(FULL, topic=f"{EU}-partition-1"))
    house.check()
    assert sorted(house.store.partitions_of(EU)) == [partition, f"{EU}-partition-1"]
    for number in (0, 1):
        house.store.withdraw(f"{EU}-partition-{number}", Source.PUSHED)
    kept = house.store
    left: list[object] = [kept.namespaces, kept.evicted_in, kept.partitions_of(EU), kept.evicting()]
    assert not any(left)
    assert (kept.subscriptions, kept.ledgers) == (0, 0)
    # What the broker evicted so far stays counted.
    assert kept.evicted.total() == 2


@pytest.mark.parametrize("limit", ["topics_max", "subscriptions_max", "ledgers_max"])
def test_the_store_is_bounded(limit: str) -> None:
    house = House(bounds=replace(BOUNDS.backlog, **{limit: 2}))
    house.report(replace(FULL, topic=topic(1)), replace(FULL, topic=topic(2)))
    assert not house.store.report(replace(FULL, topic=topic(3)), s(0))
    house.report(replace(FULL, topic=topic(1)), at=1)
    two = (ledger(1, closed_ago_s=1), ledger(2))
    larger = report(sub("a"), sub("b"), ledgers=two, topic=topic(1))
    assert house.store.report(larger, s(2)) is (limit == "topics_max")
    assert house.store.refused == 2 - (limit == "topics_max")


def test_checks_run_every_interval_while_there_are_topics() -> None:
    house = House()
    assert house.store.due_at(s(0)) is None
    house.report(FULL, at=10)
    assert house.store.due_at(s(10)) == s(70)
    house.store.work(s(69))
    assert not house.store.is_checking
    house.store.work(s(70))
    house.store.work(s(70.5))
    assert (house.store.checks, house.store.due_at(s(71))) == (1, s(130))


def check_in_slices(house: House) -> list[int]:
    """Work a check off; returns how many topics each slice visited."""
    visited = []
    while house.store.due_at(s(1)) == s(1):
        before = house.store.visited
        house.store.work(s(1))
        visited.append(house.store.visited - before)
    return visited


def test_a_check_goes_through_the_topics_in_slices() -> None:
    house = House()
    house.report(
        *(replace(FULL, topic=topic(number)) for number in range(BOUNDS.backlog.slice_topics + 1))
    )
    house.store.ask()
    visited = check_in_slices(house)
    assert max(visited) <= BOUNDS.backlog.slice_topics
    assert sum(visited) == BOUNDS.backlog.slice_topics + 1


def test_without_periodic_checks_a_block_ends_once_the_backlog_is_inside_its_quota() -> None:
    settings = BacklogSettings(is_checked=False)
    both = replace(size_quota(50), age=BacklogQuota(-1, 150, EVICT))
    house = House(topics={EU: both}, settings=settings)
    house.report(FULL)
    house.store.work(s(70))
    assert house.blocked == {}
    house.check(at=71)
    assert house.blocked[EU] is not None
    # Its age exceeds the other quota, and nobody asks for what that evicts.
    assert house.store.work(s(131)) == []
    assert (house.evicts(), house.store.named.total()) == ({}, 0)
    assert house.blocked[EU] is not None
    house.report(report(sub(), ledgers=(ledger(1, size=40),)), at=140)
    house.store.work(s(191))
    assert house.blocked[EU] is None
