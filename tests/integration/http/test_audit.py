"""Each write that somebody asked for is one event of the daemon's log, with the token's name and never the token."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rgd.adapters.http.tokens import Tokens
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope, digest_of
from tests.support.kept_logs import SetClock, keeper_of
from tests.support.running_daemon import RunningDaemon, running_daemon

TOKEN = "s3cret-of-alice"
NAMES = {
    "group": "gold",
    "tenant": "acme",
    "namespace": "orders",
    "topic": "eu",
    "subscription": "billing",
    "cursor": "nightly",
    "name": "dispatchThrottlingRateInMsg",
    "value": "100",
}
RATE = {"dispatchThrottlingRateInMsg": 5, "ratePeriodInSecond": 1}
BODIES: dict[str, Any] = {
    "dispatchRate": RATE,
    "subscriptionDispatchRate": RATE,
    "publishRate": {"publishThrottlingRateInMsg": 5},
    "backlogQuota": {"limitSize": 10, "policy": "producer_request_hold"},
    "{cursor}": {"index": 3},
    "{group}": {"publish": {"messages": 1000}},
}


class Write(NamedTuple):
    """A route that changes something."""

    method: str
    path: str


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    tokens = Tokens({digest_of(TOKEN): frozenset({Scope.ADMIN})}, {digest_of(TOKEN): "alice"})
    keeper = keeper_of(tmp_path / "kept", 10, clock=SetClock())
    seed = PolicySnapshot({"gold": Group("gold")})
    with running_daemon(tmp_path, seed, tokens=tokens, log_door=keeper) as daemon:
        yield daemon


def call(running: RunningDaemon, write: Write) -> int:
    body = BODIES.get(write.path.rsplit("/", 1)[1])
    request = urllib.request.Request(
        running.url + write.path.format(**NAMES),
        method=write.method,
        data=None if body is None or write.method == "DELETE" else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return int(answer.status)


def test_every_write_is_one_event_with_who_and_what(running: RunningDaemon) -> None:
    writes = [
        Write(one.method, one.path)
        for one in running.server.endpoints
        if one.scope is Scope.ADMIN and one.method != "GET"
    ]
    assert len(writes) > 30
    # What is deleted was there, and a group that goes is in use no more.
    writes.sort(key=lambda write: (write.method == "DELETE", write.path.endswith("/{group}")))
    silent, secret = [], []
    for write in writes:
        if write.method == "DELETE" and write.path.endswith("s/{group}"):
            call(running, Write("PUT", "/v1/groups/{group}"))
        del running.logged[:]
        assert call(running, write) < 300, write
        events = [one for one in running.logged if one.get("by") is not None]
        if [one["by"] for one in events] != ["alice"] or not events[0]["key"]:
            silent.append((write, events))
        if TOKEN in repr(running.logged):
            secret.append(write)
    assert (silent, secret) == ([], [])


def test_an_event_has_what_was_and_what_is(running: RunningDaemon) -> None:
    call(running, Write("PUT", "/v1/groups/{group}"))
    (event,) = [one for one in running.logged if one.get("by") == "alice"]
    assert (event["event"], event["key"]) == ("policy changed", "group:gold")
    assert json.loads(event["before"]) != json.loads(event["after"])
    assert "1000" in event["after"]
