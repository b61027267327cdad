"""Backlogs at the door: pushed, checked, answered, evicted, shown; every answer is as described.

What a check finds is tested in tests/unit/core/backlog.
"""

from typing import Any

import pytest

from rgd.adapters.http import paging
from rgd.adapters.http.settings import HttpSettings
from rgd.core.bounds import BacklogBounds, Bounds
from rgd.core.policies.model import (
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    LocalLimit,
    Rates,
    rate_of,
)
from rgd.core.policies.records import BACKLOG_NAMESPACE, BACKLOG_TOPIC, LIMIT_BROKER
from tests.integration.http.door import Door, open_door
from tests.unit.adapters.http.small_daemon import UNIX_MS, SmallDaemon

EU = "persistent://acme/orders/eu"
PATH = "/v1/topics/acme/orders/eu/backlog"
CHECK = "/admin/v2/brokers/backlog-quota-check"
PLACE = "/admin/v2/persistent/acme/orders"
ASKED = {"tenant": "acme", "namespace": "orders", "topic": "eu", "bytes": 10}


def backlog(*, at: int = 0, ago_s: int = 120, name: str = "billing") -> dict[str, Any]:
    """Two ledgers of 100 bytes; the oldest message of one subscription is in the first one."""
    closed = {"id": 3, "entries": 10, "bytes": 100, "closed_at_ms": UNIX_MS - 60_000}
    oldest = {"ledger": 3, "entry": at}
    return {
        "ledgers": [closed, {"id": 5, "entries": 10, "bytes": 100}],
        "subscriptions": [
            {"name": name, "oldest": oldest, "publish_time_ms": UNIX_MS - 1000 * ago_s},
            {"name": "idle"},
        ],
        "read_at_ms": UNIX_MS,
    }


async def quota(
    door: Door, action: BacklogAction, *, size: int = -1, seconds: int = -1, topic: str = EU
) -> None:
    one = BacklogQuota(size, seconds, action)
    await door.daemon.change(BACKLOG_TOPIC + topic, lambda _known: BacklogQuotas(one, one))


@pytest.mark.parametrize(
    ("action", "held"), [(BacklogAction.HOLD, True), (BacklogAction.REFUSE, False)]
)
async def test_publishing_is_held_or_refused_by_size(
    door: Door, action: BacklogAction, held: bool
) -> None:
    await quota(door, action, size=150)
    await door.call("PUT", PATH, backlog())
    assert (await door.call("POST", "/v1/acquire", ASKED)).status == 200
    await door.call("GET", CHECK)
    door.daemon.advance(1500)

    answer = await door.call("POST", "/v1/acquire", ASKED)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "59")
    assert answer.json == {
        "granted": False,
        "messages": 0,
        "bytes": 0,
        "limited_by": "backlog",
        "dimension": "bytes",
        "retry_after_ms": 58_500,
        "quota_type": "size",
        "held": held,
    }
    blocked = {"quota_type": "size", "held": held, "retry_after_ms": 58_500}
    assert (await door.call("PUT", PATH, backlog())).json["blocked"] == blocked
    consuming = await door.call("POST", "/v1/acquire", ASKED | {"kind": "dispatch"})
    assert consuming.status == 200


async def test_by_time_an_answer_has_no_dimension_and_stands_in_its_place(door: Door) -> None:
    await quota(door, BacklogAction.REFUSE, seconds=60)
    await door.call("PUT", PATH, backlog())
    await door.call("GET", CHECK)
    answers = (await door.call("POST", "/v1/acquire", [ASKED, ASKED | {"topic": "us"}])).json
    assert answers[0]["quota_type"] == "time"
    assert "dimension" not in answers[0]
    assert [one["granted"] for one in answers] == [False, True]


async def test_an_array_is_answered_in_order_with_each_fault_in_its_place(door: Door) -> None:
    names = {"tenant": "acme", "namespace": "orders"}
    items = [
        names | {"topic": "eu"} | backlog(),
        names | {"topic": "us"} | backlog() | {"ledgers": [{"id": 1, "entries": -1, "bytes": 0}]},
        names | {"topic": "non-persistent://acme/orders/ap"} | backlog(),
        names | {"topic": EU} | backlog(name="audit"),
    ]
    first, bad, no_backlog, last = (await door.call("POST", "/v1/backlog", items)).json
    assert (first["topic"], last["topic"]) == (EU, EU)
    assert (bad["status"], no_backlog["status"]) == (400, 400)
    assert bad["reason"].startswith("ledgers[].entries: expected an integer from 0")
    assert "persistent" in no_backlog["reason"]
    stats = (await door.call("GET", f"{PLACE}/eu/stats")).json
    assert set(stats["subscriptions"]) == {"audit", "idle"}


@pytest.mark.parametrize("other", ["eu", "\\"], ids=["plain", "escaped"])
async def test_a_long_array_is_taken_but_for_an_object_that_is_too_large(
    door: Door, other: str
) -> None:
    names = {"tenant": "acme", "namespace": "orders"}
    items = [names | {"topic": f"t{number}"} | backlog() for number in range(500)]
    large = [{"id": number, "entries": 1, "bytes": 1} for number in range(1000)]
    items += [
        names | {"topic": "large"} | backlog() | {"ledgers": large},
        names | {"topic": other} | backlog(),
    ]
    *answers, refused, last = (await door.call("POST", "/v1/backlog", items)).json
    assert [one["topic"][-4:] for one in answers[:2]] == ["s/t0", "s/t1"]
    assert refused["reason"].startswith("body: expected a JSON object of at most 32768 bytes")
    assert last["topic"].endswith(f"/{other}")
    assert len(door.daemon.store) == 501


async def test_there_is_no_room_for_every_topic() -> None:
    daemon = SmallDaemon(bounds=Bounds(backlog=BacklogBounds(topics_max=1)))
    async with open_door(HttpSettings(port=0), daemon=daemon) as door:
        await door.call("PUT", PATH, backlog())
        other = await door.call("PUT", PATH.replace("eu", "us"), backlog())
        assert (other.status, other.reason[:9]) == (503, "backlogs:")
        item = {"tenant": "acme", "namespace": "orders", "topic": "us"} | backlog()
        assert (await door.call("POST", "/v1/backlog", [item])).json[0]["status"] == 503


async def test_a_topic_is_shown_and_forgotten(door: Door) -> None:
    assert (await door.call("GET", PATH)).status == 404
    await quota(door, BacklogAction.EVICT, size=1000, seconds=600)
    await door.call("PUT", PATH, backlog())
    await door.call("GET", CHECK)
    assert (await door.call("GET", PATH)).json == {
        "topic": EU,
        "source": "pushed",
        "reported_ago_s": 0.0,
        "size_bytes": 200,
        "limit_size": 1000,
        "limit_time": 600,
        "oldest": {
            "subscription": "billing",
            "position": {"ledger": 3, "entry": 0},
            "age_s": 120,
            "time_ms": UNIX_MS - 120_000,
            "age_of": "message",
        },
        "blocked": None,
        "evictions": [],
    }
    assert (await door.call("DELETE", PATH)).status == 204
    assert (await door.call("GET", PATH)).status == 404


async def test_stats_have_pulsars_fields(door: Door) -> None:
    one = BacklogQuota(1000, 600, BacklogAction.HOLD)
    key = BACKLOG_NAMESPACE + "acme/orders"
    await door.daemon.change(key, lambda _known: BacklogQuotas(one, one))
    assert (await door.call("GET", f"{PLACE}/eu/stats")).status == 404
    await door.call("PUT", PATH, backlog(at=4))
    before = (await door.call("GET", f"{PLACE}/eu/stats")).json
    assert before["oldestBacklogMessageAgeSeconds"] == -1
    assert before["oldestBacklogMessageSubscriptionName"] is None
    await door.call("GET", CHECK)
    stats = (await door.call("GET", f"{PLACE}/eu/stats")).json
    assert (stats["backlogQuotaLimitSize"], stats["backlogQuotaLimitTime"]) == (1000, 600)
    assert stats["oldestBacklogMessageAgeSeconds"] == 120
    assert stats["oldestBacklogMessageSubscriptionName"] == "billing"
    assert (stats["backlogSize"], stats["storageSize"]) == (200, 200)
    assert stats["subscriptions"]["billing"]["msgBacklogNoDelayed"] == 16
    assert stats["subscriptions"]["idle"]["msgBacklog"] == 0


async def test_an_eviction_counts_once_its_broker_confirms_it(door: Door) -> None:
    """PIP-323's counter is of evictions that happened; what rgd names may be carried out, or not."""
    await quota(door, BacklogAction.EVICT, size=1)
    await door.call("PUT", PATH, backlog())
    await door.call("GET", CHECK)
    (named,) = (await door.call("GET", "/v1/evictions")).json
    confirmed = {name: named[name] for name in ("topic", "subscription")}
    wrong = await door.call("POST", "/v1/evictions", confirmed | {"subscription": "nobody"})
    assert wrong.status == 404
    assert "nobody" in wrong.json["reason"]
    store = door.daemon.store
    assert (store.named.total(), store.evicted.total()) == (1, 0)
    for _ in range(2):
        assert (await door.call("POST", "/v1/evictions", confirmed)).status == 204
    assert (store.named.total(), store.evicted.total()) == (1, 1)


async def test_stats_have_the_counters_of_throttled_dispatch(door: Door) -> None:
    """PIP-406, and the level that it did not have: the resource group; also where nobody reported a backlog."""
    assert (await door.call("GET", f"{PLACE}/eu-partition-0/stats")).status == 404
    await door.call("PUT", "/v1/groups/reads", {"dispatch": {"messages": 8}})
    read = {"kind": "dispatch", "messages": 100, "subscription": "billing"}
    for number in range(2):
        topic = f"{EU}-partition-{number}"
        answer = await door.call("POST", "/v1/acquire", read | {"group": "reads", "topic": topic})
        assert answer.json["limited_by"] == "resource_group"
    await door.daemon.change(LIMIT_BROKER, lambda _known: LocalLimit(dispatch=Rates(rate_of(8))))
    await door.call("POST", "/v1/acquire", ASKED | read | {"topic": "eu-partition-1"})
    await door.call("PUT", PATH.replace("eu", "eu-partition-1"), backlog())
    by_group = "dispatchThrottledMsgEventsByResourceGroupLimit"
    by_broker = "dispatchThrottledMsgEventsByBrokerLimit"
    stats = (await door.call("GET", f"{PLACE}/eu-partition-0/stats")).json
    assert (stats["backlogSize"], stats["backlogQuotaLimitSize"]) == (0, -1)
    one = stats["subscriptions"]["billing"]
    assert (one["msgBacklog"], one[by_group], one[by_broker]) == (0, 1, 0)
    assert one["dispatchThrottledBytesEventsByResourceGroupLimit"] == 0
    reported = (await door.call("GET", f"{PLACE}/eu-partition-1/stats")).json["subscriptions"]
    assert (reported["billing"][by_broker], reported["idle"][by_broker]) == (1, 0)
    together = (await door.call("GET", f"{PLACE}/eu/partitioned-stats")).json
    assert list(together["partitions"]) == [f"{EU}-partition-{number}" for number in range(2)]
    assert together["subscriptions"]["billing"][by_group] == 2


async def test_partitions_are_summed_and_the_oldest_is_named(door: Door) -> None:
    await quota(door, BacklogAction.HOLD, size=1000, seconds=600)
    for number, (ago_s, name) in enumerate(((100, "a"), (300, "b"), (200, "c"))):
        path = PATH.replace("eu", f"eu-partition-{number}")
        await door.call("PUT", path, backlog(ago_s=ago_s, name=name))
    await door.call("GET", CHECK)
    stats = (await door.call("GET", f"{PLACE}/eu/partitioned-stats")).json
    assert stats["oldestBacklogMessageAgeSeconds"] == 300
    assert stats["oldestBacklogMessageSubscriptionName"] == "b"
    # A partition has the limits of its topic; they are not summed.
    assert (stats["backlogQuotaLimitSize"], stats["backlogQuotaLimitTime"]) == (1000, 600)
    assert (stats["backlogSize"], stats["metadata"]) == (600, {"partitions": 3})
    assert set(stats["subscriptions"]) == {"a", "b", "c", "idle"}
    part = stats["partitions"][f"{EU}-partition-2"]
    assert part["oldestBacklogMessageAgeSeconds"] == 200
    short = await door.call("GET", f"{PLACE}/eu/partitioned-stats?perPartition=false")
    assert short.json["partitions"] == {}
    assert (await door.call("GET", f"{PLACE}/us/partitioned-stats")).status == 404


async def test_no_number_is_beyond_javas_long(door: Door) -> None:
    most = (1 << 63) - 1
    ledgers = [
        {"id": at, "entries": most, "bytes": most, "closed_at_ms": UNIX_MS} for at in range(2)
    ]
    enormous = {
        "ledgers": ledgers,
        "subscriptions": [{"name": "a", "oldest": {"ledger": 0, "entry": 0}}],
    }
    for topic in ("eu", "us-partition-0", "us-partition-1"):
        await door.call("PUT", PATH.replace("eu", topic), enormous)
    for path in ("eu/stats", "us/partitioned-stats"):
        stats = (await door.call("GET", f"{PLACE}/{path}")).json
        assert (stats["backlogSize"], stats["storageSize"]) == (most, most)
        assert stats["subscriptions"]["a"]["msgBacklogNoDelayed"] == most


async def test_a_page_of_evictions_ends_where_it_is_large(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PAGE_BYTES", 100)
    for number in range(2):
        await quota(door, BacklogAction.EVICT, size=150, topic=f"{EU}{number}")
        await door.call("PUT", PATH.replace("eu", f"eu{number}"), backlog())
    await door.call("GET", CHECK)
    first = await door.call("GET", "/v1/evictions")
    assert [one["topic"] for one in first.json] == [f"{EU}0"]
    following = first.headers["Link"].partition(">")[0][1:]
    second = await door.call("GET", following)
    assert [one["topic"] for one in second.json] == [f"{EU}1"]
    assert "Link" not in second.headers
