"""What the poller reports and withdraws, and what becomes of evictions.

Its real reader is in tests/unit/adapters/stock and tests/integration/stock.
"""

from dataclasses import replace

import pytest

from rgd.app import backlog_evicting
from rgd.app.backlog_polling import in_turn
from rgd.core.backlog.model import Source
from rgd.ports.stock import StockDown
from rgd.ports.stock_backlogs import BrokerAway, EvictionOutcome
from tests.unit.app.polled_house import TOPICS, House, World, eviction


async def test_a_topic_that_comes_back_waits_again() -> None:
    house = House(World(TOPICS))
    await house.begin()
    house.world.gone = {TOPICS[0]}
    assert await house.poll() == TOPICS[1:]
    house.world.gone = set()
    assert await house.poll() == TOPICS[1:]
    assert await house.poll() == TOPICS


async def test_an_unreadable_topic_keeps_its_report_and_is_reported() -> None:
    house = House(World(TOPICS))
    await house.begin()
    house.world.faults = {TOPICS[0]: "answered 403 no grant"}
    assert await house.poll() == TOPICS
    assert house.poller.trouble == "1 topics cannot be read: answered 403 no grant"
    assert house.figures()["rgd_backlog_topics_unreadable"] == 1
    house.world.faults = {}
    await house.poll()
    assert house.poller.trouble is None


async def test_one_failed_poll_changes_nothing_and_two_leave_nothing() -> None:
    house = House(World(TOPICS))
    await house.begin()
    house.world.error = StockDown("connection refused")
    assert await house.poll() == TOPICS
    assert house.poller.trouble == "connection refused"
    assert await house.poll() == []
    house.world.error = None
    # Another broker may have owned them meanwhile, and its daemon may still report them.
    assert await house.poll() == []
    assert await house.poll() == TOPICS
    figures = house.figures()
    assert figures["rgd_backlog_polls_total"] == 6
    assert figures["rgd_backlog_poll_failures_total"] == 2


async def test_a_broker_that_is_away_leaves_nothing_at_once() -> None:
    house = House(World(TOPICS))
    await house.begin()
    house.world.error = BrokerAway("broker b:8080 is not alive")
    assert await house.poll() == []
    assert house.figures()["rgd_backlog_topics_owned"] == 0


async def test_topics_for_which_there_was_no_time_come_first_next_time() -> None:
    house = House(World(TOPICS))
    house.world.time = 3
    await house.begin()
    await house.poll()
    assert house.world.reads[1:] == [TOPICS[:3], [*TOPICS[3:], TOPICS[0]]]


def test_turns_go_on_after_the_last_name_also_when_it_is_gone() -> None:
    assert in_turn(["b", "d"], 5, "c") == ["d", "b"]
    assert in_turn(["b", "d"], 1, "d") == ["b"]
    assert in_turn([], 1, "d") == []


async def test_many_topics_come_in_slices() -> None:
    names = [f"persistent://acme/orders/{number:04}" for number in range(200)]
    house = House(World(names), topics_max=300)
    assert await house.begin() == names


async def test_a_position_is_evicted_once_and_counted_once() -> None:
    house = House(World(TOPICS))
    await house.carry_out(eviction(5))
    await house.carry_out(eviction(5), eviction(3))
    assert house.world.evicted == house.counted == [eviction(5)]
    await house.carry_out(eviction(6))
    assert house.counted == [eviction(5), eviction(6)]
    assert house.figures()["rgd_backlog_evictions_total:done"] == 2


async def test_what_is_not_named_any_more_is_not_evicted() -> None:
    house = House(World(TOPICS))
    house.name(eviction(5), eviction(5, topic=TOPICS[1]))
    del house.named[TOPICS[0], "s1"]
    await house.carry_out()
    assert house.world.evicted == [eviction(5, topic=TOPICS[1])]


async def test_what_is_old_was_evicted_and_then_whatever_its_age_is_more() -> None:
    house = House(World(TOPICS))
    for before_ms in (1000, None, 2000):
        await house.carry_out(eviction(5, before_ms))
    assert house.world.evicted == [eviction(5, 1000), eviction(5)]


@pytest.mark.parametrize(
    "outcome", [EvictionOutcome.FAILED, EvictionOutcome.GONE, EvictionOutcome.PASSED]
)
async def test_an_eviction_that_was_not_carried_out_is_not_counted_and_may_be_tried_again(
    outcome: EvictionOutcome,
) -> None:
    house = House(World(TOPICS))
    house.world.outcome = outcome
    await house.carry_out(eviction(5))
    await house.carry_out(eviction(5))
    assert len(house.world.evicted) == 2
    assert house.counted == []
    assert house.figures()[f"rgd_backlog_evictions_total:{outcome}"] == 2


async def test_without_enforce_nothing_is_sent() -> None:
    house = House(World(TOPICS), is_enforced=False)
    await house.carry_out(eviction(5))
    await house.carry_out(eviction(5))
    assert house.world.evicted == house.counted == []
    assert house.figures()["rgd_backlog_evictions_total:dry_run"] == 1


async def test_a_pushed_topic_is_its_brokers_to_evict() -> None:
    house = House(World(TOPICS))
    await house.carry_out(replace(eviction(5), source=Source.PUSHED))
    assert house.world.evicted == []


async def test_a_topic_that_moved_is_not_evicted() -> None:
    house = House(World(TOPICS))
    await house.begin()
    house.name(eviction(5), eviction(5, topic=TOPICS[1]))
    house.world.topics = TOPICS[1:]
    await house.poll()
    await house.carry_out()
    assert [one.topic for one in house.world.evicted] == TOPICS[1:2]


async def test_evictions_beyond_the_limit_wait_for_the_next_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog_evicting, "WAITING_MAX", 2)
    house = House(World(TOPICS))
    await house.carry_out(*(eviction(5, topic=topic) for topic in TOPICS))
    assert len(house.world.evicted) == 2
    assert house.figures()["rgd_backlog_evictions_total:dropped"] == 3
    # Only so many that were evicted are remembered.
    monkeypatch.setattr(backlog_evicting, "DONE_MAX", 1)
    for _ in range(2):
        await house.carry_out(eviction(6), eviction(6, topic=TOPICS[1]))
    assert [one.topic for one in house.world.evicted[2:]] == [*TOPICS[:2], TOPICS[1]]
