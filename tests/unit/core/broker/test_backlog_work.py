"""Backlogs at the broker's one door: events in, checks in slices among other work, effects out.

What a check finds is in tests/unit/core/backlog.
"""

from dataclasses import replace

import pytest

from rgd.core.backlog.model import QuotaType, Source
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.bounds import BOUNDS
from rgd.core.broker.effects import BacklogChecked, Evict, Fault
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogsReported,
    BacklogsWithdrawn,
    PoliciesChanged,
)
from rgd.core.buckets.decision import OverBacklog, Request
from rgd.core.policies.model import BacklogQuotas, Backlogs
from rgd.core.units import NS_PER_S
from tests.unit.core.backlog.topics import EU, EVICT, HOLD, NAMESPACE, report, size_quota, sub
from tests.unit.core.broker.desk import Desk, gold
from tests.unit.core.values import ms

FULL = report(sub("a", (1, 0), 60))
ASKED = Request(namespace=NAMESPACE, topic=EU)


def desk(quota: BacklogQuotas, **settings: float) -> Desk:
    """A live broker with a quota for all topics of a namespace."""
    one = Desk(backlog=BacklogSettings(is_precise=True, interval_ns=10 * NS_PER_S))
    one.go_live()
    snapshot = replace(gold(), backlogs=Backlogs(namespaces={NAMESPACE: quota}))
    one.handle(PoliciesChanged(ms(2005), snapshot))
    return one


def is_blocked(desk: Desk, at: float) -> bool:
    return isinstance(desk.broker.limiter.acquire(ASKED, ms(at)), OverBacklog)


def test_a_report_is_checked_when_an_interval_is_over() -> None:
    one = desk(size_quota(50, HOLD))
    assert one.handle(BacklogsReported(ms(2010), (FULL,))) == ()
    one.run(2010, 12_000)
    assert not is_blocked(one, 12_000)
    one.run(12_000, 12_500)
    assert is_blocked(one, 12_500)
    assert one.broker.backlogs.checks == 1
    # The block ends with the check that finds the quota raised.
    one.handle(PoliciesChanged(ms(12_600), gold()))
    one.run(12_600, 22_000)
    assert is_blocked(one, 22_000)
    one.handle(BacklogsReported(ms(22_000), (replace(FULL),)))
    one.run(22_000, 22_500)
    assert not is_blocked(one, 22_500)


def test_a_check_that_is_asked_for_says_what_to_evict_and_that_it_is_done() -> None:
    one = desk(size_quota(50, EVICT))
    one.handle(BacklogsReported(ms(2010), (FULL,)))
    one.handle(BacklogCheckAsked(ms(2020)))
    assert one.wake_at == 2020
    told = [effect for at in (2020, 2021) for effect in one.wake(at)]
    (evict,) = (effect for effect in told if isinstance(effect, Evict))
    assert [eviction.exceeded for eviction in evict.evictions] == [(QuotaType.SIZE,)]
    assert [effect for effect in told if isinstance(effect, BacklogChecked)] == [
        BacklogChecked(1, ms(2020), 1)
    ]


def test_a_check_takes_turns_with_other_work() -> None:
    one = desk(size_quota(50))
    topics = (
        replace(FULL, topic=f"{EU}{number}") for number in range(3 * BOUNDS.backlog.slice_topics)
    )
    for _ in range(3):
        batch = tuple(next(topics) for _ in range(BOUNDS.backlog.slice_topics))
        one.handle(BacklogsReported(ms(2010), batch))
    one.handle(BacklogCheckAsked(ms(2020)))
    while one.broker.backlogs.due_at(ms(2020)) == ms(2020):
        before = one.broker.backlogs.visited
        one.wake(2020)
        # One slice a wake, whatever else there was to do.
        assert one.broker.backlogs.visited - before <= BOUNDS.backlog.slice_topics
    assert one.broker.backlogs.visited == 3 * BOUNDS.backlog.slice_topics


def test_a_withdrawn_topic_is_not_blocked() -> None:
    one = desk(size_quota(50))
    one.handle(BacklogsReported(ms(2010), (FULL,)))
    one.handle(BacklogCheckAsked(ms(2010)))
    one.run(2010, 2100)
    assert is_blocked(one, 2100)
    one.handle(BacklogsWithdrawn(ms(2110), Source.POLLED, (EU,)))
    assert is_blocked(one, 2110)
    one.handle(BacklogsWithdrawn(ms(2120), Source.PUSHED, (EU,)))
    assert not is_blocked(one, 2120)


def test_a_broker_without_backlogs_is_not_woken_for_them() -> None:
    one = desk(size_quota(50))
    before = one.wake_at
    one.handle(BacklogsWithdrawn(ms(2010), Source.PUSHED, (EU,)))
    assert one.wake_at == before
    one.run(2010, 15_000)
    assert one.broker.backlogs.checks == 0


def test_an_exception_in_a_check_is_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    one = desk(size_quota(50))
    one.handle(BacklogsReported(ms(2010), (FULL,)))
    one.handle(BacklogCheckAsked(ms(2010)))

    def fail(*_: object) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(BacklogStore, "_check", fail)
        faults = [effect for effect in one.wake(2010) if isinstance(effect, Fault)]
    assert [fault.where for fault in faults] == ["Woken"]
    one.run(2011, 4000)
    assert is_blocked(one, 4000)
