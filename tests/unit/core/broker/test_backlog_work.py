"""Backlogs at the broker's one door: events in, checks in slices among other work, effects out.

What a check finds is in tests/unit/core/backlog.
"""

from dataclasses import replace

from rgd.core.backlog.model import Source
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogsReported,
    BacklogsWithdrawn,
    PoliciesChanged,
)
from rgd.core.buckets.decision import OverBacklog, Request
from rgd.core.policies.model import BacklogQuotas, Backlogs
from rgd.core.units import NS_PER_S
from tests.unit.core.backlog.topics import EU, HOLD, NAMESPACE, report, size_quota, sub
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
