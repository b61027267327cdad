"""Rates, backlog quotas and namespaces of `/admin/v2` over a real socket: every place, every status.

How numbers are read is in tests/unit/adapters/http/pulsar_admin, refused writes (409, 503) and
attachments in test_groups.py, tokens in test_security.py. Not covered: what pulsar-admin and a stock
Pulsar make of the same (tests/integration/pulsar_admin), and what a limit does to a request.
"""

from typing import Any

import pytest

from rgd.core.policies.model import LocalLimit, Rates
from tests.integration.http.door import Door

NAMESPACE = "/admin/v2/namespaces/acme/orders"
TOPIC = "/admin/v2/persistent/acme/orders/eu"


def dispatch(messages: object = -1, size: object = -1, *, period_s: int = 1) -> dict[str, object]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": period_s,
    }


def publish(messages: object = -1, size: object = -1) -> dict[str, object]:
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}


def quota(size: int, age_s: int, policy: str) -> dict[str, object]:
    return {"limit": size, "limitSize": size, "limitTime": age_s, "policy": policy}


async def done(door: Door, method: str, path: str, body: object = None) -> None:
    answer = await door.call(method, path, body)
    assert (answer.status, answer.body) == (204, b"")


async def shown(door: Door, path: str) -> Any:
    answer = await door.call("GET", path)
    assert answer.status == 200
    return answer.json if answer.body else None


@pytest.mark.parametrize(
    ("place", "absent"),
    [(NAMESPACE, 200), (TOPIC, 204), ("/admin/v2/non-persistent/acme/orders/eu", 204)],
)
async def test_a_publish_rate_is_set_shown_replaced_and_taken_away(
    door: Door, place: str, absent: int
) -> None:
    path = f"{place}/publishRate"

    async def is_absent() -> bool:
        answer = await door.call("GET", path)
        return (answer.status, answer.body) == (absent, b"")

    assert await is_absent()
    await done(door, "POST", path, publish("10", 0))
    assert await shown(door, path) == publish(10)
    await done(door, "POST", path, {"publishThrottlingRateInByte": 9})
    assert await shown(door, path) == publish(-1, 9)
    await done(door, "DELETE", path)
    assert await is_absent()


async def test_topics_and_subscriptions_are_kept_by_their_full_names(door: Door) -> None:
    before = dict(door.daemon.snapshot().limits.topics)
    await done(door, "POST", "/admin/v2/persistent/acme/orders/a%2Fb/dispatchRate", dispatch(1))
    await done(door, "POST", f"{TOPIC}/a%2Fb%7Cc/dispatchRate?isGlobal=false", dispatch(2))
    await done(door, "POST", "/admin/v2/non-persistent/acme/orders/eu/publishRate", publish(3))
    full = "/admin/v2/persistent/acme/orders/persistent:%2F%2Facme%2Forders%2Feu"
    await done(door, "POST", f"{full}/subscriptionDispatchRate", dispatch(4))

    limits = door.daemon.snapshot().limits
    eu = "persistent://acme/orders/eu"
    assert limits.topics == before | {
        "persistent://acme/orders/a/b": LocalLimit(dispatch=Rates(1000)),
        "non-persistent://acme/orders/eu": LocalLimit(publish=Rates(3000)),
    }
    assert limits.subscriptions == {(eu, "a/b|c"): LocalLimit(dispatch=Rates(2000))}
    assert limits.topic_subscriptions == {eu: LocalLimit(dispatch=Rates(4000))}
    assert await shown(door, f"{TOPIC}/subscriptionDispatchRate") == dispatch(4)


@pytest.mark.parametrize(
    ("written", "topic"),
    [("a+b", "a b"), ("a%20b", "a b"), ("a%2Bb", "a+b"), ("a%252Fb", "a%2Fb"), ("%C3%A9", "é")],
)
async def test_a_topic_is_written_as_pulsar_admin_encodes_it(
    door: Door, written: str, topic: str
) -> None:
    path = f"/admin/v2/persistent/acme/orders/{written}/dispatchRate"
    answer = await door.raw(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    )

    assert answer.status == 204
    assert f"persistent://acme/orders/{topic}" in door.daemon.snapshot().limits.topics


async def test_a_partition_has_a_rate_of_its_own_before_its_topics(door: Door) -> None:
    partition = f"{TOPIC}-partition-0/dispatchRate"
    await done(door, "POST", f"{TOPIC}/dispatchRate", dispatch(5))
    assert await shown(door, partition) is None
    assert await shown(door, f"{partition}?applied=true") == dispatch(5)

    await done(door, "POST", partition, dispatch(6))
    assert await shown(door, f"{partition}?applied=true") == dispatch(6)
    assert await shown(door, f"{TOPIC}/dispatchRate?applied=true") == dispatch(5)


async def test_applied_shows_the_rate_in_force_wherever_it_was_set(door: Door) -> None:
    subscription, wider = f"{TOPIC}/sub/dispatchRate", "subscriptionDispatchRate"
    path = f"{subscription}?applied=true&authoritative=false"
    assert await shown(door, path) == dispatch(0, 0)

    await done(door, "POST", f"{NAMESPACE}/{wider}", dispatch(1))
    assert await shown(door, path) == dispatch(1)
    await done(door, "POST", f"{TOPIC}/{wider}", dispatch(2))
    assert await shown(door, path) == dispatch(2)
    await done(door, "POST", subscription, dispatch(3))
    assert await shown(door, path) == dispatch(3)
    assert await shown(door, f"{TOPIC}/{wider}?applied=True") == dispatch(2)
    assert await shown(door, f"{TOPIC}/{wider}?applied=maybe") == dispatch(2)
    assert await shown(door, f"{TOPIC}/dispatchRate?applied=true") == dispatch(0, 0)


@pytest.mark.parametrize("nothing", [b"", b"null", b" null\n"])
async def test_no_rate_takes_a_namespaces_away_and_leaves_a_topics_as_pulsar(
    door: Door, nothing: bytes
) -> None:
    for path in (f"{NAMESPACE}/dispatchRate", f"{TOPIC}/dispatchRate"):
        await done(door, "POST", path, dispatch(5))
        await done(door, "POST", path, nothing)

    assert await shown(door, f"{NAMESPACE}/dispatchRate") is None
    assert await shown(door, f"{TOPIC}/dispatchRate") == dispatch(5)


# --- backlog quotas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [NAMESPACE, TOPIC, "/admin/v2/non-persistent/acme/orders/eu"])
async def test_backlog_quotas_of_both_types_are_kept_apart(door: Door, place: str) -> None:
    path, shown_at = f"{place}/backlogQuota", f"{place}/backlogQuotaMap"
    assert await shown(door, shown_at) == {}

    of_size = {"limitSize": 1000, "limitTime": 60, "policy": "producer_exception"}
    await done(door, "POST", path, of_size)
    of_age = {"limitTime": 100, "policy": "consumer_backlog_eviction"}
    await done(door, "POST", f"{path}?backlogQuotaType=message_age", of_age)
    assert await shown(door, shown_at) == {
        "destination_storage": quota(1000, 60, "producer_exception"),
        "message_age": quota(0, 100, "consumer_backlog_eviction"),
    }

    await done(door, "DELETE", f"{path}?backlogQuotaType=destination_storage")
    assert set(await shown(door, shown_at)) == {"message_age"}
    await done(door, "DELETE", f"{path}?backlogQuotaType=message_age")
    assert await shown(door, shown_at) == {}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"limit": 9}, quota(9, 0, "producer_request_hold")),
        ({"limit": 9, "limitSize": None}, quota(9, 0, "producer_request_hold")),
        ({"limitSize": "77", "limitTime": 5.9, "x": {}}, quota(77, 5, "producer_request_hold")),
        ({"limitSize": -7, "limitTime": -9}, quota(-7, -9, "producer_request_hold")),
        ({}, quota(0, 0, "producer_request_hold")),
    ],
)
async def test_a_backlog_quota_is_read_as_pulsar_reads_it(
    door: Door, body: dict[str, object], told: object
) -> None:
    await done(
        door, "POST", f"{NAMESPACE}/backlogQuota", {"policy": "producer_request_hold"} | body
    )

    assert await shown(door, f"{NAMESPACE}/backlogQuotaMap") == {"destination_storage": told}


async def test_no_backlog_quota_takes_a_topics_away_as_pulsar(door: Door) -> None:
    await done(door, "POST", f"{TOPIC}/backlogQuota", {"policy": "producer_exception"})
    await done(door, "POST", f"{TOPIC}/backlogQuota", b"null")

    assert await shown(door, f"{TOPIC}/backlogQuotaMap") == {}


async def test_applied_shows_for_each_type_the_quota_in_force(door: Door) -> None:
    for place, size in ((NAMESPACE, 1), (TOPIC, 2)):
        body = {"limitSize": size, "policy": "producer_exception"}
        await done(door, "POST", f"{place}/backlogQuota", body)
    applied = await shown(door, f"{TOPIC}/backlogQuotaMap?applied=true")
    assert applied["message_age"] == quota(-1, -1, "producer_request_hold")
    body = {"limitTime": 3, "policy": "producer_exception"}
    await done(door, "POST", f"{NAMESPACE}/backlogQuota?backlogQuotaType=message_age", body)

    for topic in (TOPIC, f"{TOPIC}-partition-7"):
        assert await shown(door, f"{topic}/backlogQuotaMap?applied=true") == {
            "destination_storage": quota(2, 0, "producer_exception"),
            "message_age": quota(0, 3, "producer_exception"),
        }


# --- namespaces -----------------------------------------------------------------------------------------


async def test_clusters_tenants_and_namespaces_are_listed(door: Door) -> None:
    assert await shown(door, "/admin/v2/clusters") == ["standalone"]
    settings = await shown(door, "/admin/v2/brokers/configuration/runtime")
    assert settings == {
        "clusterName": "standalone",
        "dispatchThrottlingRateInMsg": "0",
        "dispatchThrottlingRateInByte": "0",
    }
    assert await shown(door, "/admin/v2/tenants") == ["acme", "initech"]
    namespaces = ["acme/free", "acme/heavy", "acme/orders", "acme/stopped", "acme/trial"]
    assert await shown(door, "/admin/v2/namespaces/acme") == [*namespaces, "acme/watched"]
    assert await shown(door, "/admin/v2/namespaces/initech") == []
    missing = await door.call("GET", "/admin/v2/namespaces/nobody")
    assert (missing.status, missing.reason) == (404, "Tenant not found")


async def test_a_namespaces_policies_are_shown_as_pulsar_shows_them(door: Door) -> None:
    nothing = {
        "replication_clusters": ["standalone"],
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "publishMaxMessageRate": {},
    }
    assert await shown(door, "/admin/v2/namespaces/acme/free") == nothing

    await done(door, "POST", f"{NAMESPACE}/publishRate", publish(10))
    await done(door, "POST", f"{NAMESPACE}/dispatchRate", dispatch(20, period_s=2))
    await done(door, "POST", f"{NAMESPACE}/subscriptionDispatchRate", dispatch(30))
    body = {"limitSize": 4, "policy": "producer_exception"}
    await done(door, "POST", f"{NAMESPACE}/backlogQuota", body)
    assert await shown(door, NAMESPACE) == {
        "replication_clusters": ["standalone"],
        "backlog_quota_map": {"destination_storage": quota(4, 0, "producer_exception")},
        "clusterDispatchRate": {"standalone": dispatch(20, period_s=2)},
        "topicDispatchRate": {"standalone": dispatch(20, period_s=2)},
        "subscriptionDispatchRate": {"standalone": dispatch(30)},
        "publishMaxMessageRate": {"standalone": publish(10)},
        "resource_group_name": "gold",
    }
