"""When an eviction counts: once it was carried out, whoever does that; what is named is counted apart."""

from rgd.core.backlog.model import QuotaType, Source
from tests.unit.core.backlog.topics import EU, EVICT, House, report, size_quota, sub


def test_a_pushed_topics_eviction_counts_once_a_report_when_its_broker_confirms_it() -> None:
    house = House(topics={EU: size_quota(50, EVICT)})
    house.report(report(sub("a"), sub("b")))
    house.check(confirms=False)
    assert (house.store.named, house.store.evicted) == ({QuotaType.SIZE: 1}, {})
    house.check(at=2, confirms=False)
    assert house.store.named == {QuotaType.SIZE: 1}
    for named in house.state().evictions:
        house.store.evicted_now(named)
    assert house.store.evicted == {QuotaType.SIZE: 1}
    house.report(report(sub("a")), at=3)
    house.check(at=4)
    assert (house.store.named, house.store.evicted) == ({QuotaType.SIZE: 2}, {QuotaType.SIZE: 2})


def test_a_polled_topics_eviction_counts_once_a_report_when_it_was_carried_out() -> None:
    house = House(topics={EU: size_quota(50, EVICT)})
    house.report(report(sub("a"), sub("b"), source=Source.POLLED))
    house.check()
    first, second = house.state().evictions
    assert house.store.evicted == {}
    assert house.store.exceeded[QuotaType.SIZE, EVICT] == 1
    house.store.evicted_now(first)
    house.store.evicted_now(second)
    # Both subscriptions are one eviction of the topic's backlog.
    assert house.store.evicted == {QuotaType.SIZE: 1}
    assert (house.state().evicted_size, house.state().evicted_time) == (1, 0)
    house.report(report(sub("a"), source=Source.POLLED), at=3)
    house.check(at=4)
    house.store.evicted_now(house.state().evictions[0])
    assert house.store.evicted == {QuotaType.SIZE: 2}


def test_an_eviction_of_a_topic_that_moved_meanwhile_is_nobodys() -> None:
    house = House(topics={EU: size_quota(50, EVICT)})
    house.report(report(sub("a"), source=Source.POLLED))
    house.check()
    (named,) = house.state().evictions
    house.store.withdraw(EU, Source.POLLED)
    house.store.evicted_now(named)
    assert house.store.evicted == {}
