"""Following a stock Pulsar: what is in force when, what is told, and which topics are read.

Over a stand-in for the port, so that each poll is exact. Not covered: HTTP
(tests/unit/adapters/stock), and a real Pulsar (tests/integration/stock).
"""

import asyncio
import random
from collections.abc import Iterator, Mapping

import pytest
import structlog
from structlog.testing import LogCapture

from rgd.app.policies import stock as stock_module
from rgd.app.policies.stock import Origins, PulsarAdminPolicies, hash_of, snapshot_of
from rgd.core.errors import PoliciesReadOnly
from rgd.core.policies.model import (
    Attachments,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
)
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.units import Kind
from rgd.ports.stock import (
    Reading,
    StockDown,
    StockError,
    StockNamespace,
    StockPolicies,
    StockTopic,
)

EU = "persistent://acme/orders/eu"
SLOW = LocalLimit(publish=Rates(1000))
GOLD = StockPolicies({"gold": Group("gold", Limit(Rates(1_000_000)))})
SPARE = StockPolicies({"spare": Group("spare")})
WITH_TOPIC = StockPolicies(topics={EU: StockTopic(SLOW)})


class Stock:
    """Answers what it was given, again and again; remembers what it was asked."""

    def __init__(self, says: StockPolicies | StockError) -> None:
        self.says = says
        self.faults: Mapping[str, str] = {}
        self.known = StockPolicies()
        self.topics: Mapping[str, frozenset[str]] = {}
        #: Released by each poll.
        self.reads = asyncio.Semaphore(0)
        self.is_closed = False

    async def read(self, known: StockPolicies, topics: Mapping[str, frozenset[str]]) -> Reading:
        self.known, self.topics = known, topics
        self.reads.release()
        if isinstance(self.says, StockError):
            raise self.says
        return Reading(self.says, self.faults)

    async def close(self) -> None:
        self.is_closed = True


class Store:
    """Keeps in memory."""

    def __init__(self, stored: StockPolicies | None = None) -> None:
        self.stored = stored
        self.is_full = False

    def load(self) -> StockPolicies | None:
        return self.stored

    def store(self, policies: StockPolicies) -> None:
        if self.is_full:
            raise OSError("no space")
        self.stored = policies


class House:
    """A source of policies over a stand-in, and the snapshots that it told."""

    def __init__(
        self,
        says: StockPolicies | StockError,
        *,
        stored: StockPolicies | None = None,
        stand_in: PolicySnapshot | None = None,
        topic_calls_max: int = 1000,
    ) -> None:
        self.stock, self.store = Stock(says), Store(stored)
        self.asked: list[tuple[Kind, str | None, str | None, str | None, str | None]] = []
        origins = Origins(self.stock, self.store, stand_in, lambda: self.asked)
        self.policies = PulsarAdminPolicies(
            origins, random.Random(1), poll_s=0.001, topic_calls_max=topic_calls_max
        )
        self.told: list[PolicySnapshot] = []
        self.hashes: list[int] = []

    def trouble(self) -> str | None:
        return self.policies.trouble

    def is_settled(self) -> bool:
        return self.policies.is_settled

    def is_known(self) -> bool:
        return self.policies.is_known

    async def poll(self) -> None:
        await self.policies.poll(self.on_snapshot)

    def on_snapshot(self, snapshot: PolicySnapshot, policies_hash: int) -> None:
        self.told.append(snapshot)
        self.hashes.append(policies_hash)

    def ask(self, topic: str | None, subscription: str | None = None) -> None:
        self.asked.append((Kind.PUBLISH, None, "acme/orders", topic, subscription))


@pytest.fixture
def said() -> Iterator[LogCapture]:
    """What was logged."""
    capture = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[capture])
    yield capture
    structlog.configure(processors=before)


# What is in force.


async def test_what_could_not_be_stored_is_told_and_stored_with_a_later_poll() -> None:
    house = House(GOLD)
    house.store.is_full = True
    for _ in range(2):
        await house.poll()
        assert house.told == [snapshot_of(GOLD)]
        assert "cannot be kept on disk for the next start: no space" in str(house.trouble())
    house.store.is_full = False
    await house.poll()
    assert (house.store.stored, house.trouble()) == (GOLD, None)


async def test_a_poll_that_fails_changes_nothing(said: LogCapture) -> None:
    house = House(GOLD)
    await house.poll()
    house.stock.says = StockDown("tenants: refused")
    await house.poll()
    await house.poll()
    assert house.policies.snapshot() == snapshot_of(GOLD)
    assert house.trouble() == "tenants: refused; in force is what was read last"
    house.stock.says = SPARE
    await house.poll()
    assert house.trouble() is None
    assert house.told == [snapshot_of(GOLD), snapshot_of(SPARE)]
    assert [entry["log_level"] for entry in said.entries] == ["warning", "info"]


async def test_an_answer_that_cannot_be_used_is_reported_once(said: LogCapture) -> None:
    house = House(GOLD)
    house.stock.faults = {"resourcegroups/trial": "resourcegroups/trial answered 500"}
    await house.poll()
    await house.poll()
    trouble = house.trouble()
    assert trouble is not None
    assert "resourcegroups/trial answered 500" in trouble
    house.stock.faults = {**house.stock.faults, "namespaces/acme/orders": "html"}
    await house.poll()
    house.stock.faults = {}
    await house.poll()
    assert house.trouble() is None
    assert [(entry["log_level"], entry.get("first")) for entry in said.entries] == [
        ("warning", "resourcegroups/trial answered 500"),
        ("warning", "html"),
        ("info", None),
    ]


# The start.


async def test_a_start_without_pulsar_and_anything_stored_has_nothing_and_reports_it() -> None:
    house = House(StockDown("refused"))
    assert house.trouble() == "Pulsar was not read yet; in force is nothing"
    assert house.is_settled() is False
    await house.poll()
    assert house.trouble() == "refused; in force is nothing"
    assert house.is_settled() is True
    assert house.policies.is_known is False
    assert house.policies.snapshot() == EMPTY_SNAPSHOT
    assert house.told == []


async def test_a_start_without_pulsar_holds_to_the_groups_file() -> None:
    house = House(StockDown("refused"), stand_in=snapshot_of(GOLD))
    await house.poll()
    assert house.policies.snapshot() == snapshot_of(GOLD)
    assert house.trouble() == "refused; in force is the groups file"


# Its life.


async def test_following_polls_until_it_is_cancelled() -> None:
    house = House(GOLD)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(house.policies.follow(house.on_snapshot))
        for _ in range(3):
            await house.stock.reads.acquire()
        following.cancel()
    assert house.told == [EMPTY_SNAPSHOT, snapshot_of(GOLD)]
    await house.policies.close()
    assert house.stock.is_closed


async def test_writes_are_refused() -> None:
    house = House(GOLD)
    with pytest.raises(PoliciesReadOnly, match="pulsar-admin"):
        await house.policies.change("group:gold", lambda known: known)


@pytest.mark.parametrize("where", ["while it is reckoned", "when it is told"])
async def test_an_internal_error_loses_no_change_of_pulsars(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(GOLD)
    await house.poll()
    house.stock.says = SPARE
    faults = iter([ZeroDivisionError("injected")])

    def digest(policies: StockPolicies) -> tuple[PolicySnapshot, int]:
        for fault in faults if where == "while it is reckoned" else ():
            raise fault
        return snapshot_of(policies), hash_of(policies)

    def on_snapshot(snapshot: PolicySnapshot, policies_hash: int) -> None:
        for fault in faults if where == "when it is told" else ():
            raise fault
        house.on_snapshot(snapshot, policies_hash)

    monkeypatch.setattr(stock_module, "_digest", digest)
    with pytest.raises(ZeroDivisionError):
        await house.policies.poll(on_snapshot)
    assert "internal error" in (house.trouble() or "")
    assert house.policies.figures().is_old
    assert house.policies.snapshot() == snapshot_of(GOLD)
    await house.policies.poll(on_snapshot)
    assert house.told == [snapshot_of(GOLD), snapshot_of(SPARE)]
    assert house.store.stored == SPARE
    assert house.trouble() is None


# Topics.


async def test_topics_can_be_left_alone() -> None:
    house = House(GOLD, stored=WITH_TOPIC, topic_calls_max=0)
    house.ask(EU)
    await house.poll()
    assert house.stock.topics == {}
    assert house.stock.known == StockPolicies()


async def test_topics_that_do_not_fit_are_reported_once(said: LogCapture) -> None:
    house = House(GOLD, topic_calls_max=4)
    house.ask(EU)
    house.ask("persistent://acme/orders/us")
    await house.poll()
    await house.poll()
    assert [(entry["topics"], entry["read"]) for entry in said.entries] == [(2, 1)]


# The snapshot.


def test_every_part_has_its_place_in_the_snapshot() -> None:
    quotas = BacklogQuotas(BacklogQuota(5))
    stock = StockPolicies(
        groups=GOLD.groups,
        namespaces={
            "acme/orders": StockNamespace("gold", SLOW, LocalLimit(dispatch=Rates(2)), quotas),
            "acme/bare": StockNamespace(),
            "acme/lost": StockNamespace("nobody"),
        },
        topics={
            EU: StockTopic(
                SLOW, LocalLimit(dispatch=Rates(3)), {"sub": LocalLimit(dispatch=Rates(4))}, quotas
            )
        },
    )
    assert snapshot_of(stock) == PolicySnapshot(
        groups=GOLD.groups,
        attach=Attachments(namespaces={"acme/orders": "gold", "acme/lost": "nobody"}),
        limits=Limits(
            topics={EU: SLOW},
            subscriptions={(EU, "sub"): LocalLimit(dispatch=Rates(4))},
            namespaces={"acme/orders": SLOW},
            namespace_subscriptions={"acme/orders": LocalLimit(dispatch=Rates(2))},
            topic_subscriptions={EU: LocalLimit(dispatch=Rates(3))},
        ),
        backlogs=Backlogs({"acme/orders": quotas}, {EU: quotas}),
    )
    assert snapshot_of(stock).existing == {"acme", "acme/orders", "acme/bare", "acme/lost"}
    assert [group.name for group in snapshot_of(stock).groups_of("acme/lost")] == []
