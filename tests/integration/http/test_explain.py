"""`GET /v1/explain` and `PATCH /v1/groups/{g}` at the door of a whole daemon.

Every answer is held against the daemon's own /openapi.json. Not covered: what the levels say
(tests/unit/views/test_explain.py).
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, SharePolicyName, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.integration.http.door import call
from tests.support.running_daemon import RunningDaemon, running_daemon

GOLD = Group("gold", Limit(Rates(rate_of(8), rate_of(5000))), policy=SharePolicyName.STEAL)
SNAPSHOT = PolicySnapshot({"gold": GOLD}, Attachments(namespaces={"acme/orders": "gold"}))
NAMES = "tenant=acme&namespace=orders"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        yield daemon


async def test_it_names_the_group_and_the_dimension_that_cut(running: RunningDaemon) -> None:
    asked = Request(messages=60, bytes=7, namespace="acme/orders")
    await asyncio.to_thread(running.ask, *[asked] * 4)
    told = (await call(running, "GET", f"/v1/explain?{NAMES}")).json
    assert (told["broker"], told["kind"], told["namespace"]) == (
        "broker-1",
        "publish",
        "acme/orders",
    )
    assert told["limited_by"] == {
        "level": "resource_group",
        "group": "gold",
        "dimension": "messages",
    }
    [level] = told["levels"]
    assert level["set_at"] == [{"scope": "namespace", "name": "acme/orders"}]
    assert level["refused_last_minute"]["by_messages"]["requests"] == 3
    assert level["messages"]["quota"] == 8
    assert level["messages"]["tokens"] < 0


async def test_names_that_nobody_attached_are_not_governed(running: RunningDaemon) -> None:
    told = (await call(running, "GET", "/v1/explain?tenant=acme&namespace=free&kind=dispatch")).json
    assert (told["governed"], told["levels"], told["kind"]) == (False, [], "dispatch")


async def test_a_topic_has_one_full_name_however_it_is_spelt(running: RunningDaemon) -> None:
    odd = "a%2Fb%20c%2B%25%26"
    for spelt in (odd, f"persistent%3A%2F%2Facme%2Forders%2F{odd}"):
        path = f"/v1/explain?{NAMES}&topic={spelt}&subscription=s%20%2F1"
        told = (await call(running, "GET", path)).json
        assert told["topic"] == "persistent://acme/orders/a/b c+%&"
        assert told["subscription"] == "s /1"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "tenant"),
        ("tenant=acme", "namespace"),
        (f"{NAMES}&tpic=eu", "tpic"),
        (f"{NAMES}&tenant=other", "tenant"),
        (f"{NAMES}&kind=both", "kind"),
        (f"{NAMES}&kind=", "kind"),
        (f"{NAMES}&topic=", "topic"),
        (f"{NAMES}&topic=persistent://other/orders/eu", "topic"),
        (f"{NAMES}&subscription=s", "subscription"),
        (f"{NAMES}&topic=eu&subscription=", "subscription"),
        ("tenant=a%20b&namespace=orders", "tenant"),
        ("tenant=&namespace=orders", "tenant"),
    ],
)
async def test_what_is_malformed_is_400_and_named(
    running: RunningDaemon, query: str, named: str
) -> None:
    answer = await call(running, "GET", f"/v1/explain?{query}")
    assert answer.status == 400
    assert answer.reason.startswith(named)


async def test_a_patch_changes_what_it_says_and_keeps_the_rest(running: RunningDaemon) -> None:
    patch = {"publish": {"bytes": None}, "dispatch": {"messages": 0.5}, "shadow": True}
    answer = await call(running, "PATCH", "/v1/groups/gold", patch)
    assert answer.status == 200
    assert answer.json["publish"]["quota"] == {"messages": 8, "bytes": None}
    assert answer.json["dispatch"]["quota"] == {"messages": 0.5, "bytes": None}
    assert (answer.json["shadow"], answer.json["policy"]) == (True, "steal")
    answer = await call(running, "PATCH", "/v1/groups/gold", {"policy": None})
    assert (answer.json["shadow"], answer.json["policy"]) == (True, "max-min")
    assert (await call(running, "PATCH", "/v1/groups/new", {})).status == 201


async def test_patches_at_once_never_undo_each_other(running: RunningDaemon) -> None:
    patches: list[dict[str, Any]] = [
        {"publish": {"messages": 11}},
        {"publish": {"bytes": 12}},
        {"dispatch": {"messages": 13}},
        {"dispatch": {"bytes": 14}},
        {"shadow": True},
        {"blocked": False, "topic_split": "even"},
    ]
    await asyncio.gather(*(call(running, "PATCH", "/v1/groups/gold", one) for one in patches))
    told = (await call(running, "GET", "/v1/groups/gold")).json
    assert told["publish"]["quota"] == {"messages": 11, "bytes": 12}
    assert told["dispatch"]["quota"] == {"messages": 13, "bytes": 14}
    assert (told["shadow"], told["topic_split"], told["policy"]) == (True, "even", "steal")


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ({"publish": {"messages": 0}}, "publish.messages"),
        ({"publish": {"mesages": 1}}, "publish.mesages"),
        ({"dispatch": None}, "dispatch"),
        ({"policy": "best"}, "policy"),
        ({"blocked": None}, "blocked"),
        ({"quota": 1}, "quota"),
    ],
)
async def test_a_malformed_patch_is_400_and_changes_nothing(
    running: RunningDaemon, patch: object, named: str
) -> None:
    answer = await call(running, "PATCH", "/v1/groups/gold", patch)
    assert answer.status == 400
    assert answer.reason.startswith(named)
    assert running.snapshot().groups["gold"] == GOLD
