"""`/v1/groups`, `/v1/brokers` and `/admin/v2` over a real socket: every status and its words.

What Pulsar's leniency means is in tests/unit/adapters/http/pulsar_admin; rates and backlog quotas in
test_policies.py; pulsar-admin itself is not run here.
"""

import pytest

from tests.integration.http.door import Door

RESOURCE_GROUPS = "/admin/v2/resourcegroups"
NAMESPACE = "/admin/v2/namespaces/acme/orders/resourcegroup"
NAMESPACE_POLICIES = "/admin/v2/namespaces/acme/orders"
TOPIC = "/admin/v2/persistent/acme/orders/eu"
RATE_CALLS = [
    (method, rate)
    for method in ("POST", "DELETE")
    for rate in ("dispatchRate", "subscriptionDispatchRate", "publishRate")
]
NEW_NAMESPACE = "/admin/v2/namespaces/new/place/resourcegroup"


WRITES: list[tuple[str, str, object]] = [
    ("PUT", "/v1/groups/gold", {}),
    ("DELETE", "/v1/groups/idle", None),
    ("PUT", f"{RESOURCE_GROUPS}/gold", {}),
    ("DELETE", f"{RESOURCE_GROUPS}/idle", None),
    ("POST", f"{NAMESPACE}/trial", None),
    ("DELETE", NAMESPACE, None),
    ("POST", "/admin/v2/tenants/acme/resourcegroup/trial", None),
    ("DELETE", "/admin/v2/tenants/acme/resourcegroup", None),
    ("POST", f"{TOPIC}/resourcegroup/trial", None),
    ("DELETE", f"{TOPIC}/resourcegroup", None),
    *((method, f"{NAMESPACE_POLICIES}/{rate}", {}) for method, rate in RATE_CALLS),
    *((method, f"{TOPIC}/{rate}", {}) for method, rate in RATE_CALLS),
    ("POST", f"{TOPIC}/sub/dispatchRate", {}),
    ("DELETE", f"{TOPIC}/sub/dispatchRate", None),
    ("POST", f"{NAMESPACE_POLICIES}/backlogQuota", {"policy": "producer_exception"}),
    ("DELETE", f"{NAMESPACE_POLICIES}/backlogQuota", None),
    ("POST", f"{TOPIC}/backlogQuota", {"policy": "producer_exception"}),
    ("DELETE", f"{TOPIC}/backlogQuota", None),
]


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("read_only", 409, "policies.source is file: change groups.yaml"),
        ("down", 503, "the policies table cannot be written now"),
    ],
)
@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_what_cannot_be_written_is_said(
    door: Door, method: str, path: str, body: object, fault: str, status: int, reason: str
) -> None:
    setattr(door.daemon, fault, True)

    answer = await door.call(method, path, body)

    assert (answer.status, answer.reason) == (status, reason)


# --- as Pulsar -----------------------------------------------------------------------------------------


async def test_pulsars_list_get_put_and_delete(door: Door) -> None:
    path = f"{RESOURCE_GROUPS}/new"
    body = {"publishRateInMsgs": 10, "dispatchRateInBytes": 2048}

    assert (await door.call("PUT", path, body)).status == 204
    assert (await door.call("GET", path)).json == {
        "publishRateInMsgs": 10,
        "publishRateInBytes": -1,
        "dispatchRateInMsgs": -1,
        "dispatchRateInBytes": 2048,
    }
    assert "new" in (await door.call("GET", RESOURCE_GROUPS)).json
    assert (await door.call("DELETE", path)).status == 204
    assert "new" not in (await door.call("GET", RESOURCE_GROUPS)).json


async def test_pulsars_group_in_use_is_409_in_its_words(door: Door) -> None:
    answer = await door.call("DELETE", f"{RESOURCE_GROUPS}/trial")

    assert answer.status == 409
    assert answer.reason.startswith("ResourceGroup is in use")


async def test_a_namespace_exists_once_it_is_attached(door: Door) -> None:
    for method in ("GET", "DELETE"):
        answer = await door.call(method, NEW_NAMESPACE)
        assert (answer.status, answer.reason) == (404, "Namespace does not exist")

    assert (await door.call("POST", f"{NEW_NAMESPACE}/gold")).status == 204
    assert (await door.call("GET", NEW_NAMESPACE)).body == b"gold"


async def test_a_body_where_none_is_taken_does_no_harm(door: Door) -> None:
    assert (await door.call("POST", f"{NAMESPACE}/trial", b'""')).status == 204


# --- tenants and topics, which Pulsar cannot attach -----------------------------------------------------


@pytest.mark.parametrize(
    ("place", "missing"),
    [
        ("tenants/{}", "Tenant does not exist"),
        ("persistent/{}/orders/eu", "Namespace not found"),
        ("non-persistent/{}/orders/eu", "Namespace not found"),
    ],
)
async def test_tenants_and_topics_are_attached_after_the_same_pattern(
    door: Door, place: str, missing: str
) -> None:
    path = f"/admin/v2/{place.format('new')}/resourcegroup"
    for method in ("GET", "DELETE"):
        answer = await door.call(method, path)
        assert (answer.status, answer.reason) == (404, missing)

    assert (await door.call("POST", f"{path}/gold")).status == 204
    assert (await door.call("GET", path)).body == b"gold"
    assert (await door.call("POST", f"{path}/trial")).status == 204
    assert (await door.call("GET", path)).body == b"trial"
    assert (await door.call("DELETE", "/admin/v2/resourcegroups/trial")).status == 409
    assert (await door.call("POST", f"{path}/nobody")).status == 412
    assert (await door.call("DELETE", path)).status == 204
