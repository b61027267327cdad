"""The policies table as a daemon writes it, over the in-memory store.

Not covered: a groups file that changes, and stores with a broker (tests/contract/exchange).
"""

import asyncio

from rgd.adapters.exchange.memory import MemoryBus, MemoryPolicyStore
from rgd.app.policies import TablePolicies, put_group
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Group, Limit, Rates
from rgd.wire.policies import decode_policy


async def nothing_to_prepare() -> None:
    """The in-memory store needs no namespace."""


def table(bus: MemoryBus, writer: str, seed: PolicyBook | None = None) -> TablePolicies:
    return TablePolicies(
        MemoryPolicyStore(bus), writer, seed or PolicyBook(), prepare=nothing_to_prepare
    )


def gold(messages: int) -> Group:
    return Group("gold", Limit(Rates(messages)))


async def test_two_writes_at_once_have_revisions_of_their_own() -> None:
    bus = MemoryBus()
    policies = table(bus, "broker-1")
    await policies.open()
    await asyncio.gather(*(put_group(policies, gold(rate)) for rate in (1000, 2000, 3000)))
    assert decode_policy("group:gold", bus.table["group:gold"]).revision == 3
    await policies.close()


async def test_a_groups_file_seeds_only_what_the_table_lacks() -> None:
    bus = MemoryBus()
    first = table(bus, "broker-1", PolicyBook({"gold": gold(1000)}))
    await first.open()
    await put_group(first, gold(2000))
    second = table(bus, "broker-2", PolicyBook({"gold": gold(1000), "trial": Group("trial")}))
    await second.open()
    assert second.book().groups == {"gold": gold(2000), "trial": Group("trial")}
    await first.close()
    await second.close()
