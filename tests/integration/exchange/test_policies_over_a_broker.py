"""Policies tables of several daemons over a real broker: the embedded one and Apache Pulsar.

Not covered here: every way in which writers may meet (tests/unit/app/test_policies_table.py), links that
swallow everything (tests/contract/exchange/test_faults.py), and whole daemons (tests/e2e/test_policies.py).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.app.policies.table import TablePolicies
from rgd.core.policies.model import Attachments, Group, Rates
from rgd.core.policies.records import Value
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.ports.exchange import ExchangeDown
from rgd.wire.policies import decode_policy
from tests.contract.exchange.backends import PATIENT, EmbeddedBackend
from tests.support.policy_tables import NothingKept, following, until
from tests.support.pulsar_operator import Operator, ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone

GOLD = "group:gold"
NAMESPACE = "public/rgd-integration"
TIMEOUT_S = 60
#: Apache Pulsar takes some 20 s to start with nothing in it, on a busy machine minutes.
WIPE_TIMEOUT_S = 600
CHANGES = 40
#: Enough to need many flights, few enough for a light test; 100,000 are measured, not tested.
SEEDS = 3000

MakeTable = Callable[..., TablePolicies]
#: Takes all data of the broker away, and has it serve again.
Wipe = Callable[[], Awaitable[None]]


@dataclass
class Broker:
    """What a test may do with the broker."""

    url: str
    topic: str
    wipe: Wipe
    admin_url: str | None = None


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=pytest.mark.embedded),
        pytest.param("apache", marks=pytest.mark.pulsar),
    ]
)
async def broker(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Broker]:
    """A broker, and a topic that nobody has used."""
    topic = f"persistent://{NAMESPACE}/{re.sub(r'[^a-z]+', '-', request.node.name)}"
    if request.param == "embedded":
        async with EmbeddedBackend.running(tmp_path / "exchange", "any") as embedded:
            yield Broker(embedded.url, topic, embedded.wipe)
        return
    apache = request.getfixturevalue("apache_pulsar")

    async def wipe() -> None:
        await asyncio.to_thread(apache.restart, is_wiped=True)

    yield Broker(apache.service_url, topic, wipe, apache.admin_url)


@pytest.fixture
def make_table(broker: Broker) -> MakeTable:
    """Makes tables, not open yet, over one empty topic."""

    async def prepare() -> None:
        if broker.admin_url is not None:
            await ensure_namespace(broker.admin_url, NAMESPACE)

    def make(writer: str, seed: PolicySnapshot = EMPTY_SNAPSHOT) -> TablePolicies:
        store = PulsarPolicyStore(broker.url, broker.topic, settings=PATIENT)
        return TablePolicies(store, writer, seed, prepare=prepare, kept=NothingKept())

    return make


async def deleted(broker: Broker) -> set[str]:
    """The keys whose record in the table says that they were deleted."""
    store = PulsarPolicyStore(broker.url, broker.topic, settings=PATIENT)
    records = await store.open()
    await store.close()
    return {key for key, value in records if decode_policy(key, value).value is None}


async def hammer(policies: TablePolicies) -> None:
    """Raise a quota by one message a second, many times in a row."""

    def one_more(known: Value) -> Group:
        group = known if isinstance(known, Group) else Group("gold")
        raised = Rates((group.quota.publish.messages or 0) + 1000)
        return replace(group, quota=replace(group.quota, publish=raised))

    for _ in range(CHANGES):
        await policies.change(GOLD, one_more)


async def test_daemons_that_start_at_once_with_a_large_file_seed_it(make_table: MakeTable) -> None:
    attached = {f"acme/namespace-{number}": "gold" for number in range(SEEDS)}
    seed = PolicySnapshot({"gold": Group("gold")}, Attachments(namespaces=attached))
    first, second, other = make_table("a", seed), make_table("b", seed), make_table("c")
    async with following(first, second, other, timeout_s=TIMEOUT_S):
        await until(lambda: other.snapshot().attach.namespaces == attached, timeout_s=TIMEOUT_S)
        # Seeds count as the table's by now: what is deleted is not seeded again.
        await other.change("namespace:acme/namespace-7", detached)
        late = make_table("d", seed)
        async with following(late, timeout_s=TIMEOUT_S):
            assert len(late.snapshot().attach.namespaces) == SEEDS - 1


def detached(_known: Value) -> None:
    return None


async def test_a_broker_that_comes_back_empty_gets_every_policy_back(
    broker: Broker, make_table: MakeTable
) -> None:
    left, right = make_table("left"), make_table("right")
    async with following(left, right, timeout_s=WIPE_TIMEOUT_S):
        # Positions in the next topic begin below those that were read.
        await hammer(left)
        await right.change("group:gone", lambda _known: Group("gone"))
        await right.change("group:gone", detached)
        await until(lambda: left.snapshot() == right.snapshot(), timeout_s=TIMEOUT_S)
        known = left.snapshot().groups
        # The namespace is gone, too: who runs makes it again.
        await broker.wipe()
        newcomer = make_table("newcomer")
        async with following(newcomer, timeout_s=WIPE_TIMEOUT_S):
            await until(lambda: newcomer.snapshot().groups == known, timeout_s=TIMEOUT_S)
            await until(lambda: left.trouble is None and right.trouble is None, timeout_s=TIMEOUT_S)
            # Of the two it may be the one that knew of it which looked last.
            while "group:gone" not in await deleted(broker):
                pass
            await newcomer.change(GOLD, lambda _known: Group("gold"))
            await until(
                lambda: left.snapshot() == right.snapshot() == newcomer.snapshot(),
                timeout_s=TIMEOUT_S,
            )
            assert left.figures().lost >= 1


@pytest.mark.pulsar
async def test_a_terminated_topic_is_reported_with_the_next_change_and_what_is_known_stays(
    apache_pulsar: PulsarStandalone,
) -> None:
    path = f"{NAMESPACE}/terminated"

    async def prepare() -> None:
        await ensure_namespace(apache_pulsar.admin_url, NAMESPACE)

    def make(writer: str, seed: PolicySnapshot = EMPTY_SNAPSHOT) -> TablePolicies:
        url, topic = apache_pulsar.service_url, f"persistent://{path}"
        store = PulsarPolicyStore(url, topic, settings=PATIENT)
        return TablePolicies(store, writer, seed, prepare=prepare, kept=NothingKept())

    runs, starts = make("runs"), make("starts", PolicySnapshot({"late": Group("late")}))
    operator = Operator(apache_pulsar)
    async with following(runs, timeout_s=TIMEOUT_S):
        await runs.change(GOLD, lambda _known: Group("gold"))
        await operator.call("POST", f"persistent/{path}/terminate")
        with pytest.raises(ExchangeDown):
            await runs.change(GOLD, lambda _known: Group("gold", blocked=True))
        remedy = f"topics delete --force persistent://{path}"
        await until(lambda: remedy in (runs.trouble or ""), timeout_s=TIMEOUT_S)
        assert runs.snapshot().groups.keys() == {"gold"}
        following_late = asyncio.create_task(starts.follow(lambda *_: None))
        await until(lambda: remedy in (starts.trouble or ""), timeout_s=TIMEOUT_S)
        assert starts.snapshot().groups.keys() == {"late"}
        # As the message says.
        await operator.call("DELETE", f"persistent/{path}?force=true")
        await until(lambda: runs.trouble is None and starts.trouble is None, timeout_s=TIMEOUT_S)
        await until(lambda: runs.snapshot().groups.keys() == {"gold", "late"})
        await runs.change(GOLD, lambda _known: Group("gold", blocked=True))
        await until(lambda: starts.snapshot().groups.get("gold") == Group("gold", blocked=True))
        following_late.cancel()
        await starts.close()
