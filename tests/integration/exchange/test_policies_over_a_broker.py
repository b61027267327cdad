"""Policies tables of several daemons over a real broker: the embedded one and Apache Pulsar.

Not covered here: every way in which writers may meet (tests/unit/app/test_policies_table.py), and
whole daemons (tests/e2e/test_policies.py).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.pulsar_admin import ensure_namespace
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.app.policies.table import TablePolicies
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.policies.records import Value
from tests.support import components
from tests.support.policy_tables import following, until

GOLD = "group:gold"
NAMESPACE = "public/rgd-integration"
TIMEOUT_S = 60
CHANGES = 40
#: Enough to need many flights, few enough for a light test; 100,000 are measured, not tested.
SEEDS = 3000

MakeTable = Callable[..., TablePolicies]


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=pytest.mark.embedded),
        pytest.param("apache", marks=pytest.mark.pulsar),
    ]
)
async def make_table(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeTable]:
    """Makes tables, not open yet, over one empty topic."""
    topic = f"persistent://{NAMESPACE}/{re.sub(r'[^a-z]+', '-', request.node.name)}"
    embedded: EmbeddedBroker | None = None
    admin_url: str | None = None
    if request.param == "embedded":
        components.embedded_broker()
        embedded = EmbeddedBroker(tmp_path / "exchange")
        url = await embedded.ensure()
    else:
        apache_pulsar = request.getfixturevalue("apache_pulsar")
        url, admin_url = apache_pulsar.service_url, apache_pulsar.admin_url

    async def prepare() -> None:
        if admin_url is not None:
            await ensure_namespace(admin_url, NAMESPACE)

    def make(writer: str, seed: PolicyBook = EMPTY_BOOK) -> TablePolicies:
        return TablePolicies(PulsarPolicyStore(url, topic), writer, seed, prepare=prepare)

    yield make
    if embedded is not None:
        await embedded.stop()


async def test_two_writers_that_hammer_one_group_lose_nothing(make_table: MakeTable) -> None:
    left, right = make_table("left"), make_table("right")
    async with following(left, right, timeout_s=TIMEOUT_S):
        await asyncio.gather(
            hammer(left, "publish"), hammer(right, "publish"), hammer(right, "dispatch")
        )
        both, one = 2 * CHANGES * 1000, CHANGES * 1000
        counted = {"gold": Group("gold", Limit(Rates(both), Rates(one)))}
        await until(
            lambda: left.book().groups == right.book().groups == counted, timeout_s=TIMEOUT_S
        )
        late = make_table("late")
        async with following(late, timeout_s=TIMEOUT_S):
            assert late.book().groups == counted


async def hammer(policies: TablePolicies, kind: str) -> None:
    """Raise a quota by one message a second, many times in a row."""

    def one_more(known: Value) -> Group:
        group = known if isinstance(known, Group) else Group("gold")
        rates: Rates = getattr(group.quota, kind)
        raised = Rates((rates.messages or 0) + 1000)
        return replace(group, quota=replace(group.quota, **{kind: raised}))

    for _ in range(CHANGES):
        await policies.change(GOLD, one_more)


async def test_daemons_that_start_at_once_with_a_large_file_seed_it(make_table: MakeTable) -> None:
    attached = {f"acme/namespace-{number}": "gold" for number in range(SEEDS)}
    seed = PolicyBook({"gold": Group("gold")}, Attachments(namespaces=attached))
    first, second, other = make_table("a", seed), make_table("b", seed), make_table("c")
    async with following(first, second, other, timeout_s=TIMEOUT_S):
        await until(lambda: other.book().attach.namespaces == attached, timeout_s=TIMEOUT_S)
        # Seeds count as the table's by now: what is deleted is not seeded again.
        await other.change("namespace:acme/namespace-7", detached)
        late = make_table("d", seed)
        async with following(late, timeout_s=TIMEOUT_S):
            assert len(late.book().attach.namespaces) == SEEDS - 1


def detached(_known: Value) -> None:
    return None
