"""No read route does much at a time, at 5,000 groups in use, 100 brokers and 100,000 namespaces.

Every GET of the route table is called, so a new route is covered; work is counted, never timed: the lines of
Python that run between two rests. `bench/neighbours.py` has the times.
"""

import re
import sys
from collections.abc import Awaitable, Generator
from types import FrameType
from typing import Any, Final

import msgspec
import numpy as np
import pytest

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.reply import Call, Reply
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.metrics.exposition import Exposition
from rgd.app.telemetry import Telemetry
from rgd.core.backlog.model import Ledger, Position, Source, SubscriptionBacklog, TopicBacklog
from rgd.core.broker.events import MessageReceived, Started, Woken
from rgd.core.buckets.decision import Request
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.policies.records import PolicyRecords, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_S, Nanos
from rgd.ports.door import Scope
from tests.support.running_daemon import memory_daemon
from tests.support.whole_daemon import HttpServer, RgdDaemon

pytestmark = pytest.mark.slow

GROUPS: Final = 5_000
BROKERS: Final = 100
NAMESPACES: Final = 100_000
#: Brokers that have a row of a group, this one too.
BROKERS_A_GROUP: Final = 5

#: Lines of Python between two rests: some 20 ms at most.
LINES_MAX: Final = 60_000
#: What passes over all names once, some 10 ms.
ALL_NAMES: Final = {"/admin/v2/tenants": 110_000, "/admin/v2/namespaces/{tenant}": 110_000}

PARTS: Final = {
    "group": "group-00007",
    "tenant": "tenant-003",
    "namespace": "namespace-003001",
    "topic": "eu",
    "subscription": "sub",
}
EXPLAIN: Final = {"tenant": "tenant-003", "namespace": "namespace-003001", "topic": "eu"}


def names() -> list[str]:
    """The groups."""
    return [f"group-{number:05}" for number in range(GROUPS)]


def snapshot() -> PolicySnapshot:
    """The policies as the table makes them."""
    groups = names()
    attached = {
        f"tenant-{number // 1000:03}/namespace-{number:06}": groups[number % GROUPS]
        for number in range(NAMESPACES)
    }
    records = PolicyRecords()
    limit = Limit(Rates(1000 * MILLI))
    whole = PolicySnapshot({name: Group(name, limit) for name in groups}, Attachments({}, attached))
    for record in records_of(whole, "one"):
        records.put(record)
    return records.snapshot()


def state_of(number: int) -> UsageColumns:
    """All that one of the other brokers has to say: each group is used by four of them."""
    others = BROKERS - 1
    groups = [
        name for at, name in enumerate(names()) if (number - at) % others < BROKERS_A_GROUP - 1
    ]
    wanted = np.full((len(groups), 2), 300 * MILLI)
    kinds, topics = np.zeros(len(groups), np.uint8), np.ones(len(groups), np.int64)
    return UsageColumns(tuple(groups), kinds, topics, wanted, wanted)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> RgdDaemon:
    """A daemon that nobody runs, with everything in use."""
    made = memory_daemon(tmp_path_factory.mktemp("daemon"), snapshot())
    core = made.core
    core.handle(Started(made.now()))
    for number in range(BROKERS - 1):
        sender = Sender(f"other-{number:03}", 1)
        report = Report(sender, 1, NS_PER_S, rows=state_of(number), full=True)
        core.handle(MessageReceived(made.now(), report))
    for name in names():
        core.limiter.acquire(Request(group=name), made.now())
    began = made.now()
    while core.wake_at is not None and core.wake_at < began + 2 * core.settings.round_ns:
        core.handle(Woken(Nanos(max(core.wake_at, began))))
    assert len(core.peers) == BROKERS - 1
    return made


class Sliced:
    """Runs a coroutine and counts the lines between its rests; await it."""

    def __init__(self, work: Awaitable[Reply]) -> None:
        self._work = work
        self._lines = 0
        self.slices: list[int] = []

    def __await__(self) -> Generator[Any, None, Reply]:
        running = self._work.__await__()
        while True:
            try:
                resting = self._step(running)
            except StopIteration as ended:
                reply: Reply = ended.value
                return reply
            yield resting

    def _step(self, running: Generator[Any, Any, Reply]) -> Any:
        self._lines = 0
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return next(running)
        finally:
            sys.settrace(before)
            self.slices.append(self._lines)

    def _trace(self, _frame: FrameType, event: str, _arg: object) -> Any:
        self._lines += event == "line"
        return self._trace


def answered(endpoint: Endpoint, call: Call) -> Awaitable[Reply]:
    """The reply of the plane to a call."""
    assert endpoint.handler is not None
    return endpoint.handler(call)


def call_of(endpoint: Endpoint) -> Call:
    """A call of a route, with as much of it as may be asked for."""
    path = {part: PARTS[part] for part in re.findall(r"\{(\w+)\}", endpoint.path)}
    raw = re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]], endpoint.path)
    query = EXPLAIN if endpoint.path == "/v1/explain" else {}
    if endpoint.path in {"/v1/groups", "/v1/brokers"}:
        query = {"limit": "1000"}
    return Call(path, {}, b"", query, raw)


#: Partitioned topics have a test of their own.
PARTITIONED = "/persistent/{tenant}/{namespace}/{topic}/partitioned-stats"
#: Routes of topics that nobody reports here, and of a log that is off.
UNKNOWN = (
    "/v1/log/entries",
    "/v1/log/cursors",
    "/partitioned-stats",
    "/admin/v2/non-persistent/{tenant}/{namespace}/{topic}/stats",
)


async def test_no_read_route_does_much_between_two_rests(daemon: RgdDaemon) -> None:
    exposition = Exposition(Telemetry(daemon))
    server = HttpServer(daemon, HttpSettings(port=0), metrics=exposition.render)
    reads = [
        endpoint
        for endpoint in server.endpoints
        if endpoint.method == "GET"
        and endpoint.handler is not None
        # A change may wait for the daemon, and nobody runs it.
        and endpoint.scope is not Scope.ADMIN
        and not endpoint.path.endswith(UNKNOWN)
    ]
    [report] = [
        one
        for one in server.endpoints
        if (one.method, one.path.split("/")[-1]) == ("PUT", "backlog")
    ]
    body = b'{"ledgers":[],"subscriptions":[]}'
    assert (await answered(report, call_of(report)._replace(body=body))).status == 200
    # Once for each change of policies the first who asks passes over all attachments (some 5 ms for 100,000).
    daemon.core.sharing.snapshot.attached_to("")
    for endpoint in reads:
        sliced = Sliced(answered(endpoint, call_of(endpoint)))
        reply = await sliced
        assert reply.status in {200, 204}, endpoint.path
        assert max(sliced.slices) <= ALL_NAMES.get(endpoint.path, LINES_MAX), endpoint.path


async def test_many_partitions_are_summed(daemon: RgdDaemon) -> None:
    server = HttpServer(daemon, HttpSettings(port=0), metrics=Exposition(Telemetry(daemon)).render)
    topic = "persistent://tenant-003/namespace-003001/eu"
    ledgers = (Ledger(1, 10, 100),)
    subscriptions = tuple(SubscriptionBacklog(f"s{at}", Position(1, 0)) for at in range(20))
    parts = [f"{topic}-partition-{number}" for number in range(1000)]
    for part in parts:
        daemon.backlogs.report((TopicBacklog(part, ledgers, subscriptions, Source.POLLED, 0),))
    [endpoint] = [one for one in server.endpoints if one.path.endswith(PARTITIONED)]
    sliced = Sliced(answered(endpoint, call_of(endpoint)))
    stats = msgspec.json.decode((await sliced).body)
    await daemon.backlogs.withdraw_all(Source.POLLED, parts)
    assert max(sliced.slices) <= LINES_MAX
    assert (stats["backlogSize"], stats["storageSize"]) == (100_000, 100_000)
    assert [*stats["partitions"]] == sorted(parts)
    assert stats["subscriptions"]["s19"]["msgBacklog"] == 10_000
    assert stats["replication"] == {}


async def test_all_pages_have_every_group_with_its_rows_and_what_is_attached(
    daemon: RgdDaemon,
) -> None:
    server = HttpServer(daemon, HttpSettings(port=0), metrics=Exposition(Telemetry(daemon)).render)
    [endpoint] = [
        one for one in server.endpoints if (one.method, one.path) == ("GET", "/v1/groups")
    ]
    found: list[Any] = []
    link: str | None = ""
    while link is not None:
        reply = await answered(endpoint, Call({}, {}, b"", {"limit": "1000", "after": link}))
        found += msgspec.json.decode(reply.body)
        link = found[-1]["group"] if "Link" in reply.headers else None
    assert [view["group"] for view in found] == names()
    assert {len(view["publish"]["rows"]) for view in found} == {BROKERS_A_GROUP - 1}
    assert {len(view["namespaces"]) for view in found} == {NAMESPACES // GROUPS}
