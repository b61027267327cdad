"""`rgd groups` against a whole daemon in this process.

Not covered: several daemons; attaching tenants and topics, which
are the door's own tests; here only where the calls go.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.http.client import attachment_path
from rgd.adapters.http.tokens import Tokens
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Rates,
    SharePolicyName,
    TopicSplit,
    rate_of,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope, digest_of
from tests.support.running_daemon import RunningDaemon, running_daemon
from tests.unit.cli.conftest import Rgd

GOLD = Group(
    "gold",
    Limit(Rates(rate_of(1000), rate_of(5e6)), Rates(rate_of(2000))),
    policy=SharePolicyName.STEAL,
    topic_split=TopicSplit.EVEN,
)
SNAPSHOT = PolicySnapshot(
    {"gold": GOLD, "idle": Group("idle"), "stopped": Group("stopped", blocked=True)},
    Attachments(namespaces={"acme/orders": "gold"}),
)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        monkeypatch.setenv("RGD_URL", daemon.url)
        yield daemon


def test_list_shows_quota_share_and_state(rgd: Rgd, running: RunningDaemon) -> None:
    outcome = rgd("groups", "list")
    assert (outcome.code, outcome.err) == (0, "")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[1:] == [
        ["gold", "publish", "1,000", "1,000", "5MB", "5MB", "live", "policy=steal,topic_split=even"],
        ["gold", "dispatch", "2,000", "2,000", "unlimited", "-", "live", "policy=steal,topic_split=even"],
        ["idle", "any", "unlimited", "-", "unlimited", "-", "live", "-"],
        ["stopped", "publish", "0", "0", "0", "0", "live", "blocked"],
        ["stopped", "dispatch", "0", "0", "0", "0", "live", "blocked"],
    ]  # fmt: skip


def test_list_without_groups_says_how_to_make_one(
    rgd: Rgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_daemon(tmp_path, PolicySnapshot()) as daemon:
        outcome = rgd("groups", "list", "--url", daemon.url)
    assert outcome.code == 0
    assert "rgd groups set" in outcome.out


def test_json_is_what_the_daemon_answers(rgd: Rgd, running: RunningDaemon) -> None:
    [listed] = [view for view in json.loads(rgd("groups", "list", "--json").out) if view["group"] == "gold"]  # fmt: skip
    got = json.loads(rgd("groups", "get", "gold", "--json").out)
    assert got["publish"]["quota"] == listed["publish"]["quota"] == {"messages": 1000, "bytes": 5e6}
    assert got["namespaces"] == ["acme/orders"]


def test_get_shows_attachments_and_brokers(rgd: Rgd, running: RunningDaemon) -> None:
    running.ask(Request(group="gold"))
    outcome = rgd("groups", "get", "gold")
    assert outcome.code == 0
    assert outcome.out.startswith("gold: live; policy steal, topic split even\n")
    assert "namespaces: acme/orders" in outcome.out
    assert "(quota)" in outcome.out


def test_get_shows_an_idle_broker_with_its_share(rgd: Rgd, running: RunningDaemon) -> None:
    lines = [line.split() for line in rgd("groups", "get", "gold").out.splitlines()]
    assert ["publish", "broker-1", "1,000", "-", "-", "5MB", "-", "-"] in lines


def test_set_keeps_fields_that_are_not_given(rgd: Rgd, running: RunningDaemon) -> None:
    outcome = rgd("groups", "set", "gold", "--publish-messages", "2k", "--blocked")
    assert (outcome.code, outcome.err) == (0, "")
    publish = GOLD.quota.publish._replace(messages=rate_of(2000))
    assert running.snapshot().groups["gold"] == replace(
        GOLD, quota=replace(GOLD.quota, publish=publish), blocked=True
    )
    told = rgd("groups", "set", "gold", "--no-blocked", "--shadow", "--soft", "0.8")
    assert told.code == 0
    assert "shadow, soft=0.8" in told.out
    assert running.snapshot().groups["gold"].soft_ppm == 800_000
    assert rgd("groups", "set", "gold", "--soft", "0").code == 0
    assert running.snapshot().groups["gold"].soft_ppm is None
    gold = running.snapshot().groups["gold"]
    assert (gold.blocked, gold.shadow, gold.quota.publish) == (False, True, publish)


def test_asking_wrongly_is_every_fault_and_2_and_changes_nothing(
    rgd: Rgd, running: RunningDaemon
) -> None:
    outcome = rgd(
        *("groups", "set", "gold", "--publish-messages", "0", "--dispatch-bytes", "much"),
        *("--policy", "best", "--topic-split", "odd"),
    )
    assert outcome.code == 2
    told = outcome.err.splitlines()
    assert len(told) == 4
    assert "--publish-messages" in told[0]
    assert "unlimited" in told[0]
    assert "--blocked" in told[0]
    assert "--dispatch-bytes" in told[1]
    assert "max-min" in told[2]
    assert "proportional" in told[3]
    assert running.snapshot().groups["gold"] == GOLD


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "a/b"),
        ("delete", "gold", "a b"),
        ("attach", "gold", "acme/orders", "acme//x"),
        ("attach", "gold"),
        ("detach", "persistent://acme"),
        ("set", ""),
    ],
)
def test_a_malformed_name_is_2_and_changes_nothing(
    rgd: Rgd, running: RunningDaemon, arguments: tuple[str, ...]
) -> None:
    before = running.snapshot()
    assert rgd("groups", *arguments).code == 2
    assert running.snapshot() == before


def test_delete_deletes_what_nothing_is_attached_to(rgd: Rgd, running: RunningDaemon) -> None:
    assert rgd("groups", "delete", "idle", "stopped").out == "idle: deleted\nstopped: deleted\n"
    outcome = rgd("groups", "delete", "gold")
    assert outcome.code == 1
    assert "acme/orders" in outcome.err
    assert set(running.snapshot().groups) == {"gold"}
    assert rgd("groups", "delete", "idle").code == 1


def test_attach_and_detach_a_namespace(rgd: Rgd, running: RunningDaemon) -> None:
    outcome = rgd("groups", "attach", "stopped", "acme/orders", "acme/new")
    assert outcome.out == "acme/orders: attached to stopped\nacme/new: attached to stopped\n"
    assert running.snapshot().attach.namespaces == {"acme/orders": "stopped", "acme/new": "stopped"}
    assert rgd("groups", "detach", "acme/new").out == "acme/new: detached\n"
    assert running.snapshot().attach.namespaces == {"acme/orders": "stopped"}


def test_attaching_to_no_group_fails_and_changes_nothing(rgd: Rgd, running: RunningDaemon) -> None:
    outcome = rgd("groups", "attach", "silver", "acme/orders")
    assert (outcome.code, outcome.out) == (1, "")
    assert "does not exist" in outcome.err
    assert running.snapshot().attach.namespaces == {"acme/orders": "gold"}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("acme", "/admin/v2/tenants/acme/resourcegroup"),
        ("acme/orders", "/admin/v2/namespaces/acme/orders/resourcegroup"),
        ("persistent://acme/orders/eu", "/admin/v2/persistent/acme/orders/eu/resourcegroup"),
        (
            "non-persistent://acme/orders/a/b c%+?",
            "/admin/v2/non-persistent/acme/orders/a%2Fb%20c%25%2B%3F/resourcegroup",
        ),
    ],
)
def test_the_paths_of_attachments(name: str, path: str) -> None:
    assert attachment_path(name) == path


def test_nobody_there_is_1_with_the_remedy(rgd: Rgd) -> None:
    outcome = rgd("groups", "list", "--url", "http://127.0.0.1:1")
    assert (outcome.code, outcome.out) == (1, "")
    assert len(outcome.err.splitlines()) == 1
    for word in ("http://127.0.0.1:1", "rgd serve", "--url", "RGD_URL"):
        assert word in outcome.err


@pytest.mark.parametrize("url", ["127.0.0.1:7700", "ftp://x", "unix://relative"])
def test_an_address_that_is_none_is_2(rgd: Rgd, url: str) -> None:
    outcome = rgd("groups", "list", "--url", url)
    assert outcome.code == 2
    assert "--url" in outcome.err


def test_a_token_comes_from_a_file_or_the_environment_and_is_never_shown(
    rgd: Rgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = {"s3cret": Scope.READ, "adm1n": Scope.ADMIN}
    tokens = Tokens({digest_of(token): frozenset({scope}) for token, scope in scopes.items()})
    file = tmp_path / "token"
    file.write_text("adm1n\n")
    with running_daemon(tmp_path, SNAPSHOT, tokens=tokens) as daemon:
        monkeypatch.setenv("RGD_URL", daemon.url)
        refused = rgd("groups", "list")
        assert refused.code == 1
        assert "--token-file" in refused.err
        monkeypatch.setenv("RGD_TOKEN", "s3cret")
        assert rgd("groups", "list").code == 0
        denied = rgd("groups", "delete", "idle")
        assert denied.code == 1
        assert "admin" in denied.err
        assert "s3cret" not in denied.err
        # A file that is named is stronger than what is in the environment.
        assert rgd("groups", "delete", "idle", "--token-file", file).code == 0


@pytest.mark.parametrize("content", [b"", b"two tokens", b"\xff\xfe"])
def test_a_token_file_without_a_token_is_2_and_nothing_of_it_is_shown(
    rgd: Rgd, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    outcome = rgd("groups", "list", "--token-file", file)
    assert outcome.code == 2
    assert str(file) in outcome.err
    assert "two" not in outcome.err
    assert rgd("groups", "list", "--token-file", tmp_path / "none").code == 2
