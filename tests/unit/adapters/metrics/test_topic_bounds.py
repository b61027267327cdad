"""Series of topics, subscriptions and namespaces, bounded together and folded.

The figures themselves are in tests/unit/app/test_backlog_telemetry.py.
"""

from rgd.adapters.metrics.exposition import Exposition
from rgd.adapters.metrics.labels import topic_bounds
from rgd.ports.metrics import Sample
from tests.unit.adapters.metrics.test_exposition import Figures

AGE = "pulsar_storage_backlog_age_seconds"
SIZE = "pulsar_storage_backlog_size"
LIMIT = "pulsar_storage_backlog_quota_limit"
EVICTIONS = "pulsar_storage_backlog_quota_exceeded_evictions_total"
EVENTS = "pulsar_subscription_dispatch_throttled_msg_events"
LAG = "rgd_upload_tier_lag"


def of(name: str, topic: str, value: float, *more: str, namespace: str = "a/b") -> Sample:
    return Sample(name, ("c1", namespace, topic, *more), value)


async def lines(exposition: Exposition, name: str) -> list[str]:
    body, _ = await exposition.render("")
    return [line for line in body.decode().splitlines() if line.startswith(f"{name}{{")]


def door(*, topics: int = 2, subscriptions: int = 2) -> tuple[Figures, Exposition]:
    figures = Figures()
    return figures, Exposition(figures, "c1", topic_bounds(topics, subscriptions))


async def test_topics_beyond_the_bound_are_shown_together() -> None:
    figures, exposition = door()
    for number in range(4):
        topic = f"t{number}"
        figures.now += [of(SIZE, topic, 10 + number), of(AGE, topic, number), of(LIMIT, topic, 7)]
    scope = 'cluster="c1",namespace="a/b"'
    assert await lines(exposition, SIZE) == [
        f'{SIZE}{{{scope},topic="t0"}} 10.0',
        f'{SIZE}{{{scope},topic="t1"}} 11.0',
        f'{SIZE}{{{scope},topic="other"}} 25.0',
    ]
    assert f'{AGE}{{{scope},topic="other"}} 3.0' in await lines(exposition, AGE)
    assert len(await lines(exposition, LIMIT)) == 2


async def test_a_namespaces_series_have_no_topic() -> None:
    figures, exposition = door()
    figures.now = [of(SIZE, "", 10), of(SIZE, "", 5), of(EVICTIONS, "", 3, "size")]
    scope = 'cluster="c1",namespace="a/b"'
    assert await lines(exposition, SIZE) == [f"{SIZE}{{{scope}}} 15.0"]
    assert await lines(exposition, EVICTIONS) == [f'{EVICTIONS}{{{scope},quota_type="size"}} 3.0']


async def test_a_topic_that_goes_frees_its_series_and_takes_its_evictions_along() -> None:
    figures, exposition = door(topics=1)
    figures.now = [of(EVICTIONS, "t0", 5, "size"), of(EVICTIONS, "t1", 2, "size")]
    assert 'topic="other"} 2.0' in (await lines(exposition, EVICTIONS))[1]
    figures.now = [of(EVICTIONS, "t1", 3, "size")]
    (folded,) = await lines(exposition, EVICTIONS)
    assert 'topic="other"} 3.0' in folded
    (own,) = await lines(exposition, EVICTIONS)
    assert 'topic="t1"} 3.0' in own
    figures.now = []
    assert await lines(exposition, EVICTIONS) == []


async def test_a_partition_is_a_label_of_its_own_where_it_is_configured() -> None:
    figures = Figures()
    figures.now = [
        of(SIZE, "persistent://a/b/t-partition-12", 1),
        of(SIZE, "persistent://a/b/t-partition-x", 2),
        of(SIZE, "", 3, namespace="a/c"),
        of(EVICTIONS, "persistent://a/b/t-partition-12", 4, "size"),
        Sample(EVENTS, ("c1", "a", "a/b", "persistent://a/b/t-partition-0", "s", "topic"), 5),
        Sample(LAG, ("usage", "broker-1"), 6),
    ]
    exposition = Exposition(figures, "c1", split_partitions=True)
    assert await lines(exposition, SIZE) == [
        f'{SIZE}{{cluster="c1",namespace="a/b",partition="12",topic="persistent://a/b/t"}} 1.0',
        f'{SIZE}{{cluster="c1",namespace="a/b",partition="-1",topic="persistent://a/b/t-partition-x"}} 2.0',
        f'{SIZE}{{cluster="c1",namespace="a/c"}} 3.0',
    ]
    (evictions,) = await lines(exposition, EVICTIONS)
    assert 'partition="12",quota_type="size",topic="persistent://a/b/t"}' in evictions
    (events,) = await lines(exposition, EVENTS)
    assert 'partition="0",reason="topic",subscription="s",' in events
    assert await lines(exposition, LAG) == [f'{LAG}{{partition="broker-1",topic="usage"}} 6.0']
