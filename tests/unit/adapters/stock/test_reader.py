"""Polls of an admin API over HTTP: what they bring, and what bad answers leave as it was.

Every kind of bad answer, for each part that it may be about. Not covered: TLS handshakes, and what
comes of a reading (tests/unit/app/test_policies_stock.py).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.stock import client
from rgd.adapters.stock.parts import UNREACHED_MAX
from rgd.core.policies.model import NOT_SET, Group, Limit, LocalLimit, Rates
from rgd.ports.stock import Reading, StockDown, StockNamespace, StockPolicies, StockRefused
from tests.unit.adapters.stock.pretend_pulsar import RECORDED, PretendPulsar, admin

EU = "persistent://acme/orders/eu"
EU_PATH = "persistent/acme/orders/eu"
#: Longer than any answer of the loopback takes.
TIMEOUT_S = 30.0


async def read(pulsar: PretendPulsar, known: StockPolicies | None = None) -> Reading:
    """One poll of groups and namespaces."""
    async with admin(pulsar.url) as stock:
        return await stock.read(known or StockPolicies(), {})


@pytest.fixture
async def pulsar(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PretendPulsar]:
    monkeypatch.setattr(client, "CALL_TIMEOUT_S", TIMEOUT_S)
    async with PretendPulsar() as pretend, asyncio.timeout(60):
        yield pretend


# What a poll brings.


BROKER = "brokers/configuration/values"


async def test_the_brokers_dispatch_limit_is_that_of_the_dynamic_configuration(
    pulsar: PretendPulsar,
) -> None:
    assert (await read(pulsar)).policies.broker == NOT_SET
    values = {"dispatchThrottlingRateInMsg": "100", "maxTopicsPerNamespace": "5"}
    pulsar.say(BROKER, body=json.dumps(values))
    assert (await read(pulsar)).policies.broker == LocalLimit(dispatch=Rates(100_000))
    values = {"dispatchThrottlingRateInMsg": "-1", "dispatchThrottlingRateInByte": "3000000000"}
    pulsar.say(BROKER, body=json.dumps(values))
    limit = LocalLimit(dispatch=Rates(None, 3_000_000_000_000))
    assert (await read(pulsar)).policies.broker == limit
    pulsar.say(BROKER, body='{"dispatchThrottlingRateInMsg":"0"}')
    assert (await read(pulsar)).policies.broker == NOT_SET


@pytest.mark.parametrize(
    "answer",
    [
        {"body": '{"dispatchThrottlingRateInMsg":"many"}'},
        {"body": '{"dispatchThrottlingRateInMsg":7}'},
        {"status": 403, "body": '{"reason":"Not a superuser"}'},
    ],
)
async def test_a_bad_answer_leaves_the_brokers_limit_as_it_is_known(
    pulsar: PretendPulsar, answer: dict[str, Any]
) -> None:
    known = StockPolicies(broker=LocalLimit(dispatch=Rates(5000)))
    pulsar.say(BROKER, **answer)
    reading = await read(pulsar, known)
    assert reading.policies.broker == known.broker
    assert set(reading.faults) == {BROKER}
    assert reading.policies.groups.keys() == {"gold", "spare"}


@pytest.mark.parametrize(
    ("topic", "quoted"),
    [
        pytest.param("a/b", "a%2Fb", id="slash"),
        pytest.param("a%2Fb", "a%252Fb", id="percent"),
        pytest.param("a?b#c", "a%3Fb%23c", id="query"),
        pytest.param("ä b", "%C3%A4%20b", id="no ascii"),
        pytest.param("a+b", "a%2Bb", id="plus"),
    ],
)
async def test_names_arrive_as_they_are(pulsar: PretendPulsar, topic: str, quoted: str) -> None:
    pulsar.say(
        f"persistent/acme/orders/{quoted}/publishRate", RECORDED[f"{EU_PATH}/publishRate"]["body"]
    )
    for what in ("dispatchRate", "subscriptionDispatchRate", "backlogQuotaMap"):
        pulsar.say(f"persistent/acme/orders/{quoted}/{what}")
    pulsar.say(f"persistent/acme/orders/{quoted}/{quoted}/dispatchRate")
    name = f"persistent://acme/orders/{topic}"
    async with admin(pulsar.url) as stock:
        reading = await stock.read(StockPolicies(), {name: frozenset({topic})})
    assert reading.policies.topics[name].limit == LocalLimit(publish=Rates(3000))


async def test_what_is_deleted_between_the_list_and_the_look_is_gone(pulsar: PretendPulsar) -> None:
    before = (await read(pulsar)).policies
    for path in ("resourcegroups/gold", "namespaces/acme/orders", "namespaces/public"):
        pulsar.answers[path] = RECORDED["namespaces/acme/gone"]
    reading = await read(pulsar, before)
    assert reading.faults == {}
    assert reading.policies.groups.keys() == {"spare"}
    assert reading.policies.namespaces.keys() == {"acme/bare", "pulsar/system"}


# The cluster's name, by which namespaces' rates are kept.


@pytest.mark.parametrize("status", [401, 403])
async def test_where_it_may_not_be_read_the_setting_says(
    pulsar: PretendPulsar, status: int
) -> None:
    pulsar.say("brokers/configuration/runtime", "denied", status=status, kind="text/plain")
    reading = await read(pulsar)
    assert reading.policies.namespaces["acme/orders"].limit.publish == Rates(20_000)


# Bad answers.

BAD = [
    pytest.param((200, "text/html", "<html>Login</html>"), id="html"),
    pytest.param((404, "text/html", "<html>Not found</html>"), id="a proxy's 404"),
    pytest.param((404, "application/json", '{"message":"Not Found","status":"404"}'), id="jetty"),
    pytest.param((401, "text/html", "Authentication required"), id="401"),
    pytest.param((500, "application/json", '{"reason":"\\n --- An unexpected error"}'), id="500"),
    pytest.param((200, "application/json", ""), id="empty"),
    pytest.param((204, "", ""), id="204"),
    pytest.param((200, "application/json", "{}"), id="an empty object"),
    pytest.param((200, "application/json", "[" * 100_000), id="too deep"),
]
Bad = tuple[int, str, str]


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_answer_leaves_its_part_as_it_was(pulsar: PretendPulsar, bad: Bad) -> None:
    before = (await read(pulsar)).policies
    status, kind, body = bad
    paths = ("resourcegroups/gold", "namespaces/acme/orders", "namespaces/public")
    for path in paths:
        pulsar.say(path, body, status=status, kind=kind)
    pulsar.edit("resourcegroups/spare", dispatchRateInMsgs=7)
    reading = await read(pulsar, before)
    assert reading.faults.keys() == set(paths)
    assert reading.policies.namespaces == before.namespaces
    assert reading.policies.groups == {
        "gold": before.groups["gold"],
        "spare": Group("spare", Limit(dispatch=Rates(7000))),
    }


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad.id not in {"empty", "204"}])
@pytest.mark.parametrize(
    "what", ["publishRate", "dispatchRate", "subscriptionDispatchRate", "sub1/dispatchRate"]
)
async def test_a_bad_answer_leaves_a_topic_as_it_was(
    pulsar: PretendPulsar, what: str, bad: Bad
) -> None:
    async with admin(pulsar.url) as stock:
        before = (await stock.read(StockPolicies(), {EU: frozenset({"sub1"})})).policies
        status, kind, body = bad
        pulsar.say(f"{EU_PATH}/{what}", body, status=status, kind=kind)
        reading = await stock.read(before, {EU: frozenset()})
    assert reading.policies.topics == before.topics
    assert reading.faults.keys() == {f"topics/{EU}"}


@pytest.mark.parametrize("known", [{}, {"acme/orders": StockNamespace("spare")}])
async def test_a_group_whose_name_is_refused_leaves_a_namespace_its_limits(
    pulsar: PretendPulsar, known: dict[str, StockNamespace]
) -> None:
    whole = (await read(pulsar)).policies.namespaces["acme/orders"]
    pulsar.edit("namespaces/acme/orders", resource_group_name="half odd")
    reading = await read(pulsar, StockPolicies(namespaces=known))
    group = known["acme/orders"].group if known else None
    assert reading.policies.namespaces["acme/orders"] == replace(whole, group=group)
    assert reading.faults.keys() == {"namespaces/acme/orders"}


async def test_a_tenant_that_names_others_namespaces_is_not_believed(pulsar: PretendPulsar) -> None:
    before = (await read(pulsar)).policies
    pulsar.say("namespaces/public", ["public/default", "acme/orders"])
    reading = await read(pulsar, before)
    assert reading.policies.namespaces == before.namespaces
    assert reading.faults.keys() == {"namespaces/public"}


async def test_an_answer_without_end_is_refused(pulsar: PretendPulsar) -> None:
    pulsar.say("resourcegroups/gold", "x" * (client.BODY_BYTES_MAX + 1))
    before = StockPolicies(groups={"gold": Group("gold", Limit(Rates(1)))})
    reading = await read(pulsar, before)
    assert reading.policies.groups["gold"] == before.groups["gold"]
    assert f"larger than {client.BODY_BYTES_MAX}" in reading.faults["resourcegroups/gold"]


# No answer.


@pytest.mark.slow
async def test_one_call_without_an_answer_leaves_its_part_as_it_was(
    pulsar: PretendPulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (await read(pulsar)).policies
    pulsar.hanging.add("namespaces/acme/orders")
    pulsar.cut.add("resourcegroups/gold")
    # On a busy machine every other call is answered in this time.
    monkeypatch.setattr(client, "CALL_TIMEOUT_S", 5.0)
    reading = await read(pulsar, before)
    assert reading.policies == before
    assert reading.faults.keys() == {"namespaces/acme/orders", "resourcegroups/gold"}


async def test_many_calls_without_an_answer_end_the_poll(pulsar: PretendPulsar) -> None:
    names = [f"g{number}" for number in range(200)]
    pulsar.say("resourcegroups", names)
    pulsar.cut.update(f"resourcegroups/{name}" for name in names)
    with pytest.raises(StockDown, match=f"{UNREACHED_MAX} calls without an answer"):
        await read(pulsar)
    assert len(pulsar.calls) < 100


# Tokens and redirects.


async def test_a_token_goes_along_and_may_be_changed(pulsar: PretendPulsar, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with admin(pulsar.url, admin_token_file=token) as stock:
        await stock.read(StockPolicies(), {})
        assert pulsar.headers["Authorization"] == "Bearer first"
        token.write_text("second")
        await stock.read(StockPolicies(), {})
        assert pulsar.headers["Authorization"] == "Bearer second"


@pytest.mark.parametrize("content", [None, "", "two\nlines", "ü"], ids=str)
async def test_a_token_that_cannot_be_used_is_an_error_and_never_shown(
    pulsar: PretendPulsar, tmp_path: Path, content: str | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    async with admin(pulsar.url, admin_token_file=token) as stock:
        with pytest.raises(StockRefused, match="token"):
            await stock.read(StockPolicies(), {})
    assert pulsar.calls == []


async def test_a_redirect_to_a_topics_broker_is_followed_with_the_token(
    pulsar: PretendPulsar, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    async with PretendPulsar() as owner, admin(pulsar.url, admin_token_file=token) as stock:
        owner.say(
            f"{EU_PATH}/publishRate?authoritative=true",
            '{"publishThrottlingRateInMsg":8,"publishThrottlingRateInByte":0}',
        )
        target = f"{owner.url}/admin/v2/{EU_PATH}/publishRate?authoritative=true"
        pulsar.redirect(f"{EU_PATH}/publishRate", target)
        reading = await stock.read(StockPolicies(), {EU: frozenset()})
        assert owner.headers["Authorization"] == "Bearer secret"
    assert reading.policies.topics[EU].limit.publish == Rates(8000)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        pytest.param("/admin/v2/resourcegroups/gold", "more than 5 redirects", id="in circles"),
        pytest.param("", "redirected to nowhere", id="nowhere"),
        pytest.param("file:///etc/passwd", "redirected to nowhere", id="a file"),
        pytest.param("http://[", "", id="no address"),
    ],
)
async def test_a_redirect_that_cannot_be_followed_is_a_fault(
    pulsar: PretendPulsar, target: str, why: str
) -> None:
    pulsar.redirect("resourcegroups/gold", target)
    assert why in (await read(pulsar)).faults["resourcegroups/gold"]


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    with pytest.raises(StockRefused, match="from https to http"):
        client._next_url("tenants", "https://pulsar:8443/admin/v2/tenants", "http://pulsar/tenants")
