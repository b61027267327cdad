"""PIP-323 as tests, sentence by sentence: quotas, policies, the check, what it records and counts.

How the figures are shown is tested with the metrics and the topic stats.
"""

from dataclasses import replace

import pytest

from rgd.core.backlog.estimate import oldest_of
from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.policies.model import BacklogQuota, BacklogQuotas
from tests.support.there import there
from tests.unit.core.backlog.topics import (
    EU,
    EVICT,
    HOLD,
    NAMESPACE,
    REFUSE,
    House,
    carried_out,
    ledger,
    report,
    s,
    size_quota,
    sub,
    time_quota,
)

SIZE, TIME = QuotaType.SIZE, QuotaType.TIME
#: 100 bytes in one ledger, 60 s old.
FULL = report(sub("a", (1, 0), 60))


def blocked_by(house: House) -> QuotaType | None:
    blocked = house.blocked.get(EU)
    return None if blocked is None else blocked.quota_type


def checked(house: House) -> House:
    house.report(FULL)
    house.check()
    return house


# "The quotas can be defined as a default value for any topic ... for all topics in a given
# namespace using the namespace policy, or a specific topic using a topic policy."


def test_the_default_quota_is_for_any_topic() -> None:
    default = BacklogQuota(100, -1, REFUSE)
    house = checked(House(settings=BacklogSettings(default=default)))
    assert blocked_by(house) is SIZE


def test_a_namespaces_quota_goes_before_the_default() -> None:
    default = BacklogSettings(default=BacklogQuota(1, -1, REFUSE))
    house = checked(House(namespaces={NAMESPACE: size_quota(101)}, settings=default))
    assert blocked_by(house) is None


def test_a_topics_quota_goes_before_its_namespaces() -> None:
    house = House(topics={EU: size_quota(101)}, namespaces={NAMESPACE: size_quota(1)})
    assert blocked_by(checked(house)) is None


# "Once a topic backlog exceeds either one of those limits, an action is taken."


@pytest.mark.parametrize(
    ("limit", "over"),
    [pytest.param(100, True, id="reached, as in Pulsar"), pytest.param(101, False, id="below")],
)
def test_size_only(limit: int, over: bool) -> None:
    house = checked(House(topics={EU: size_quota(limit)}))
    assert (blocked_by(house) is SIZE) is over


@pytest.mark.parametrize(
    ("limit_s", "over"),
    [
        pytest.param(60, True, id="older"),
        pytest.param(61, False, id="exactly so old"),
        pytest.param(0, False, id="0 is unlimited"),
    ],
)
def test_time_only(limit_s: int, over: bool) -> None:
    # A second passes from the report to the check.
    house = checked(House(topics={EU: time_quota(limit_s)}))
    assert (blocked_by(house) is TIME) is over


def test_both_are_compared_and_counted_though_the_size_is_exceeded() -> None:
    both = BacklogQuotas(BacklogQuota(50, -1, EVICT), BacklogQuota(-1, 30, EVICT))
    house = checked(House(topics={EU: both}))
    assert house.store.evicted == {SIZE: 1, TIME: 1}
    assert house.state().evictions[0].exceeded == (SIZE, TIME)


# "The producer write is placed on hold for a certain amount of time before failing."


def test_producer_request_hold_holds_for_a_stated_time_and_then_refuses() -> None:
    house = checked(House(topics={EU: size_quota(50, HOLD)}))
    blocked = there(house.blocked[EU])
    assert (blocked.action, blocked.held_until, blocked.checked_at) == (HOLD, s(31), s(61))
    house.report(FULL, at=60)
    house.check(at=61)
    again = there(house.blocked[EU])
    assert (again.held_until, again.checked_at) == (s(31), s(121))


# "The producer write is failed."


def test_producer_exception_refuses_at_once() -> None:
    blocked = there(checked(House(topics={EU: size_quota(50, REFUSE)})).blocked[EU])
    assert (blocked.action, blocked.held_until) == (REFUSE, 0)


# "The subscriptions oldest unacknowledged messages will be acknowledged in-order until both the
# topic backlog size or age will fall inside the limit."

OLD_AND_LARGE = report(
    sub("slow", (1, 5), 400),
    sub("quick", (3, 2), 90),
    sub("idle", None),
    ledgers=(
        ledger(1, closed_ago_s=300),
        ledger(2, closed_ago_s=200),
        ledger(3, closed_ago_s=80),
        ledger(4),
    ),
)


@pytest.mark.parametrize("is_precise", [True, False], ids=["by messages", "by ledgers"])
@pytest.mark.parametrize(
    ("size", "seconds", "exceeded"),
    [
        pytest.param(250, 1000, (SIZE,), id="size"),
        pytest.param(1000, 110, (TIME,), id="time"),
        pytest.param(250, 150, (SIZE, TIME), id="both, of which size skips more"),
        pytest.param(350, 100, (SIZE, TIME), id="both, of which time skips more"),
    ],
)
def test_consumer_backlog_eviction_brings_both_inside(
    is_precise: bool, size: int, seconds: int, exceeded: tuple[QuotaType, ...]
) -> None:
    quotas = BacklogQuotas(BacklogQuota(size, -1, EVICT), BacklogQuota(-1, seconds, EVICT))
    house = House(topics={EU: quotas}, settings=BacklogSettings(is_precise=is_precise))
    house.report(OLD_AND_LARGE)
    house.check()
    assert house.state().evictions[0].exceeded == exceeded
    assert "idle" not in house.evicts()
    assert EU not in house.blocked

    after = there(oldest_of(carried_out(OLD_AND_LARGE, house)))
    assert after.size_bytes <= size * 9 // 10
    age_ms = after.message_age_ms if is_precise else after.ledger_age_ms or 0
    if age_ms is None:
        # Entries of a ledger are at most as old as the end of the ledger before it.
        before = OLD_AND_LARGE.ledgers[after.position.ledger - 2]
        age_ms = OLD_AND_LARGE.read_at_ms - (before.closed_at_ms or 0)
    assert age_ms <= seconds * 900


def test_eviction_of_messages_too_old_says_which_time_is_meant() -> None:
    house = House(topics={EU: time_quota(100, EVICT)})
    house.report(OLD_AND_LARGE)
    house.check(at=0)
    (slow,) = house.state().evictions
    assert slow.published_before_ms == OLD_AND_LARGE.read_at_ms - 90_000
    # The other subscription's message, of 90 s ago, is the first that is known to be young enough.
    assert slow.to == (3, 2)


# "We will cache the following for the oldest unacknowledged message: subscription name, message
# position, message publish timestamp."


def test_a_check_caches_the_oldest_message() -> None:
    house = House()
    house.report(OLD_AND_LARGE)
    assert house.state().checked is None
    house.check(at=1.5)
    checked = there(house.state().checked)
    assert (checked.subscription, checked.position) == ("slow", (1, 5))
    assert checked.time_ms == OLD_AND_LARGE.read_at_ms - 400_000
    assert (checked.age_ms, checked.is_precise) == (401_500, True)


def test_age_is_recorded_every_check_and_represents_the_last_one() -> None:
    house = House()
    house.report(FULL)
    house.check(at=1)
    house.report(replace(FULL, subscriptions=(sub("a", (1, 3), 20),)), at=30)
    assert house.age_s() == 61
    house.check(at=35)
    assert house.age_s() == 25


def test_a_backlog_that_is_gone_resets_age_and_block_with_its_report() -> None:
    house = checked(House(topics={EU: time_quota(30)}))
    assert (house.age_s(), blocked_by(house)) == (61, TIME)
    house.report(report(sub("a", None)), at=5)
    assert (house.age_s(), house.blocked[EU]) == (None, None)
    house.check(at=1000)
    assert house.store.get(EU) is None


# "If it was set to false, it's in-memory access only, since it uses the age of the ledger instead
# of the message."


def test_without_precise_checks_the_ledgers_age_is_used() -> None:
    house = House(settings=BacklogSettings(is_precise=False))
    house.report(OLD_AND_LARGE)
    house.check(at=0)
    checked = there(house.state().checked)
    assert (checked.age_ms, checked.is_precise) == (300_000, False)


# "The number of times a backlog was evicted since it has exceeded its quota."


def test_evictions_are_counted_by_topic_namespace_and_broker() -> None:
    us = "persistent://acme/orders/us"
    house = House(namespaces={NAMESPACE: size_quota(50, EVICT)})
    house.report(FULL, replace(FULL, topic=us))
    house.check()
    house.report(replace(FULL), at=2)
    house.check(at=3)
    assert (house.state(EU).evicted, house.state(us).evicted) == ((2, 0), (1, 0))
    assert house.store.evicted_in == {(NAMESPACE, SIZE): 3}
    assert house.store.evicted == {SIZE: 3}


def test_one_report_is_evicted_once_however_often_it_is_checked() -> None:
    house = checked(House(topics={EU: size_quota(50, EVICT)}))
    house.check(at=2)
    assert house.state().evicted == (1, 0)
    assert house.evicts() == {"a": (1, 6)}
