"""When an eviction counts: once it was carried out, whoever does that; what is named is counted apart."""

from rgd.core.backlog.model import QuotaType
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
