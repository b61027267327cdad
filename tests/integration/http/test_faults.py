"""What is asked wrongly of each route: one row each, with the status and the beginning of the reason; nothing comes of it.

Not covered: what is no HTTP (test_hostile.py), tokens (test_security.py), sizes (test_acquire.py), what cannot be written
(test_groups.py); any body at all (test_schemathesis.py).
"""

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from tests.integration.http.door import Door

Fields = dict[str, object]

V2 = "/admin/v2"
NAMESPACE, TOPIC = f"{V2}/namespaces/acme/orders", f"{V2}/persistent/acme/orders/eu"
NEW, NEW_TOPIC = f"{V2}/namespaces/new/place", f"{V2}/persistent/new/place/eu"
RATES = ("dispatchRate", "subscriptionDispatchRate", "publishRate")
ORDERS: Fields = {"tenant": "acme", "namespace": "orders", "topic": "eu"}
TRIAL = "tenant=acme&namespace=trial"
MANY = "dispatchThrottlingRateInMsg"
HOLD: Fields = {"policy": "producer_request_hold"}
BACKLOG: Fields = {"read_at_ms": 1, "ledgers": [], "subscriptions": []}


class Fault(NamedTuple):
    """A call, and what is said of it."""

    method: str
    path: str
    body: object
    status: int
    reason: str


def of_bodies(method: str, path: str, faults: Iterable[tuple[object, str]]) -> list[Fault]:
    """Bodies of one call that are 400."""
    return [Fault(method, path, body, 400, reason) for body, reason in faults]


def of_fields(
    method: str, path: str, sound: Fields, faults: Iterable[tuple[Fields, str]]
) -> list[Fault]:
    """Bodies of one call that are sound but for some fields."""
    return of_bodies(method, path, [(sound | fields, reason) for fields, reason in faults])


def of_queries(path: str, faults: Iterable[tuple[str, str]]) -> list[Fault]:
    """Queries of one path that are 400."""
    return [Fault("GET", f"{path}?{query}", None, 400, reason) for query, reason in faults]


ACQUIRE: list[tuple[object, str]] = [
    (b"publish!", "body: "),
    (b'{"messages":-1}', "messages: expected an integer from 0 to 9223372036854775807, got -1"),
    (b"[7]", "body: expected an array of objects"),
    (b'"acme"', "body: expected a JSON object"),
    (b"{}", "tenant: "),
]
SETTLE: list[tuple[Fields, str]] = [
    ({"messages": 1.5}, "messages: expected an integer from -"),
    ({"messages": 1 << 63}, "messages: expected an integer from -"),
    ({"unused": 1}, "unused: unknown field; expected one of tenant, namespace, group"),
    ({"group": "gold"}, "group: expected either group, or tenant and namespace, got both"),
    ({"topic": "persistent://acme/other/eu"}, "topic: expected one of "),
]
LEASE: list[tuple[Fields, str]] = [
    ({"wants_messages_per_s": -1}, "wants_messages_per_s: expected a number from 0 to "),
    ({"ttl_ms": 50}, "ttl_ms: expected milliseconds from 100 to 60000"),
    ({"messages": 1}, "messages: unknown field; expected one of "),
    ({"group": "gold"}, "group: expected either group, or tenant and namespace, got both"),
]
CHECK = [
    ("", "tenant: expected a tenant and a namespace, or a group, got nothing"),
    ("tenant=acme", "namespace: expected a namespace beside tenant, got nothing"),
    (f"{TRIAL}&messages=-1", "messages: expected an integer from 0 to "),
    (f"{TRIAL}&messages=1.5", "messages: expected an integer from 0 to "),
    (f"{TRIAL}&bytes={1 << 63}", "bytes: expected an integer from 0 to "),
    (f"{TRIAL}&attempt=0", "attempt: expected an integer from 1"),
    (f"{TRIAL}&kind=read", "kind: expected publish or dispatch"),
    (f"{TRIAL}&headers=2", "headers: expected 0 or 1"),
    ("group=trial&headers=1", "headers: expected tenant and namespace beside it, got group"),
    (f"{TRIAL}&deny=200", "deny: expected one of 403, 429, 503"),
    (f"{TRIAL}&size=1", "size: unknown parameter; expected one of tenant, "),
    (f"{TRIAL}&messages=0&messages=1", "messages: expected once, got it twice"),
    ("deny=403", "tenant: expected a tenant and a namespace, or a group, got nothing"),
]
EXPLAIN = [
    ("", "tenant"),
    (f"{TRIAL}&tpic=eu", "tpic"),
    (f"{TRIAL}&tenant=other", "tenant"),
    (f"{TRIAL}&kind=both", "kind"),
    (f"{TRIAL}&topic=persistent://other/trial/eu", "topic"),
]
GROUP: list[tuple[object, str]] = [
    ({"publish": {"messages": -1}}, "publish.messages: "),
    ({"publish": {"messages": 0}}, "publish.messages: "),
    ({"publish": {"rate": 1}}, "publish.rate: unknown field"),
    ({"name": "gold"}, "name: unknown field"),
    ({"policy": "none"}, "policy: "),
    ({"topic_split": "none"}, "topic_split: expected null or one of shared, even, proportional"),
    (b"", "body: "),
    ([], "body: "),
    *(({"soft": soft}, "soft: expected null, or a number") for soft in (0, -1, 1.5, "0.8", True)),
]
PUSH: list[tuple[Fields, str]] = [
    ({"subscriptions": [{}]}, "subscriptions[]: "),
    ({"ledgers": 1}, "ledgers: expected a list of ledgers, got 1"),
    ({"size": 1}, "size: unknown field"),
    ({"read_at_ms": -1}, "read_at_ms: expected null or milliseconds"),
    ({"ledgers": [{"id": 2, "entries": 0, "bytes": 0}] * 2}, "ledgers: expected"),
]
DISPATCH: list[tuple[object, str]] = [
    ([], "body: expected a JSON object"),
    ({MANY: "many"}, f"{MANY}: "),
    ({"relativeToPublishRate": "maybe"}, "relativeToPublishRate: "),
    ({MANY: 7, "ratePeriodInSecond": 86_400}, f"{MANY}: expected at"),
]
QUOTA: list[tuple[object, str]] = [
    (b"", "body: expected JSON"),
    (b"null", "body: expected a JSON object"),
    ({"limitTime": "x"} | HOLD, "limitTime: "),
    *(
        (
            {"limitSize": 5} | policy,
            "Set namespace[acme/orders] backlog quota failed because the data validation failed. "
            "the attribute policy cannot be null",
        )
        for policy in (Fields(), {"policy": None}, {"policy": "none"}, {"policy": ""})
    ),
]
#: By Pulsar's rules, in its words.
MALFORMED_NAMES = [
    ("namespaces/ac%20me/orders/resourcegroup", "Namespace"),
    ("namespaces/ac%20me/x/dispatchRate", "Namespace"),
    ("namespaces/ac%20me", "Tenant"),
    ("tenants/ac%20me/resourcegroup", "Tenant"),
    ("persistent/ac%20me/x/eu/resourcegroup", "Topic"),
    ("persistent/acme/x/a%0Ab/resourcegroup", "Topic"),
    ("persistent/acme/a%20b/eu/publishRate", "Topic"),
    ("persistent/acme/x/non-persistent:%2F%2Facme%2Fx%2Feu/dispatchRate", "Topic"),
    ("persistent/acme/x/persistent:%2F%2Facme%2Fy%2Feu/backlogQuotaMap", "Topic"),
    ("persistent/acme/x/eu/a%0Ab/dispatchRate", "Subscription"),
]
UNKNOWN = [
    ("POST", "/v1/acquire", {"group": "nobody"}, ""),
    ("POST", "/v1/settle", {"group": "nobody", "messages": 1}, ""),
    ("POST", "/v1/leases", {"group": "nobody", "wants_messages_per_s": 1}, ""),
    ("GET", "/v1/check?group=nobody", None, ""),
    *((method, f"{V2}/resourcegroups/nobody", None, "ResourceGroup does not exist") for method in ("GET", "DELETE")),
    *(("GET", f"{NEW}{rest}", None, "Namespace does not exist") for rest in ("", *(f"/{rate}" for rate in RATES), "/backlogQuotaMap")),
    *(("DELETE", f"{NEW}/{rate}", None, "Namespace does not exist") for rate in (*RATES, "backlogQuota")),
    *(("GET", f"{NEW_TOPIC}/{rate}", None, "Namespace not found") for rate in (*RATES, "backlogQuotaMap")),
    *((method, f"{NAMESPACE}/backlogQuota?backlogQuotaType=sizes", HOLD, "backlogQuotaType: expected destination_storage or message_age") for method in ("POST", "DELETE")),
]  # fmt: skip

FAULTS = [
    *of_bodies("POST", "/v1/acquire", ACQUIRE),
    *of_fields("POST", "/v1/settle", ORDERS, SETTLE),
    *of_fields("POST", "/v1/leases", ORDERS, LEASE),
    *of_queries("/v1/check", CHECK),
    *of_queries("/v1/explain", EXPLAIN),
    *of_bodies("PUT", "/v1/groups/gold", GROUP),
    *of_bodies("PATCH", "/v1/groups/gold", GROUP[:1]),
    *of_fields("PUT", "/v1/topics/acme/orders/eu/backlog", BACKLOG, PUSH),
    *of_bodies("POST", f"{NAMESPACE}/dispatchRate", DISPATCH),
    *of_bodies("POST", f"{NAMESPACE}/publishRate", [({"publishThrottlingRateInMsg": 1 << 31}, "publishThrottlingRateInMsg: ")]),
    *(fault for place in (NAMESPACE, TOPIC) for fault in of_bodies("POST", f"{place}/backlogQuota", QUOTA[place == TOPIC and 3 :])),
    *(fault for path in ("/v1/groups", "/v1/brokers") for fault in of_queries(path, [
        (query, "") for query in ("limit=0", "limit=1001", "limit=x", "offset=3", "limit=1&limit=2")
    ])),
    *(Fault("GET", f"{V2}/{path}", None, 412, f"{what} name is not valid: ") for path, what in MALFORMED_NAMES),
    *(Fault(method, path, body, 404, reason) for method, path, body, reason in UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(
    "fault", FAULTS, ids=lambda fault: f"{fault.method} {fault.path} {str(fault.body)[:60]}"
)
async def test_it_is_named_counted_and_nothing_comes_of_it(door: Door, fault: Fault) -> None:
    before = door.daemon.snapshot()

    answer = await door.call(fault.method, fault.path, fault.body)

    assert answer.status == fault.status
    assert answer.reason.startswith(fault.reason)
    assert [observed.status for observed in door.observed] == [fault.status]
    assert door.daemon.snapshot() is before
    assert len(door.daemon.store) == 0
    assert fault.status == 404 or door.daemon.asked == []
