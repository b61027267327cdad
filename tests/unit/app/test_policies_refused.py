"""What is logged and counted of a table's records that cannot be used, and the limits on what is taken.

Not covered: that no record ends a daemon (tests/property/test_policies_hostile.py).
"""

import asyncio

import pytest
from structlog.testing import capture_logs

from rgd.app.policies import ledger, refusals
from rgd.app.policies.refusals import Refusals
from rgd.core.policies.model import Group
from rgd.core.policies.records import PolicyRecord, Value
from rgd.ports.exchange import ExchangeDown
from rgd.wire.policies import encode_policy
from tests.support.memory_bus import MemoryBus
from tests.support.policy_tables import GOLD, following, gold, table, until

LONG = 3000
FLOOD = 5000


async def flood(bus: MemoryBus) -> None:
    """Keys that are no policies', the longest that a table takes."""
    for number in range(FLOOD):
        for inbox in bus.change_inboxes:
            inbox.put((f"\x1b[31m{number}{'x' * LONG}", b"{}"))
        await asyncio.sleep(0)


async def test_refused_records_are_counted_all_and_logged_in_short_and_seldom() -> None:
    policies = table(bus := MemoryBus(), "broker-1")
    with capture_logs() as logs:
        async with following(policies):
            await flood(bus)
            await until(lambda: policies.figures().refused == FLOOD)
    told = [log for log in logs if log["event"] == "refused policy records"]
    # 15 MB of keys came within less than ten seconds.
    assert len(told) == 1
    assert len(str(told)) < 3000
    assert "\x1b" not in str(told)


async def test_refusals_that_were_not_logged_are_logged_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refusals, "TELL_EVERY_S", 0)
    refused = Refusals()
    with capture_logs() as logs:
        for _ in range(2):
            refused.add("a", "b")
        refused.log()
        refused.log()
        refused.add("c", "d")
        refused.log()
    assert [(log["records"], log["such_as"]) for log in logs] == [
        (2, ["a: b", "a: b"]),
        (1, ["c: d"]),
    ]


async def test_a_table_has_only_so_many_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "KEYS_MAX", 3)
    bus = MemoryBus()
    bus.records = [raw(f"group:g{number}", Group(f"g{number}")) for number in range(5)]
    policies = table(bus, "broker-1")
    async with following(policies):
        assert set(policies.snapshot().groups) == {"g0", "g1", "g2"}
        assert policies.figures().refused == 2
        with pytest.raises(ExchangeDown, match="its limit, with deleted ones"):
            await policies.change(GOLD, lambda _known: gold(1))
        # Those that are there can be changed.
        await policies.change("group:g0", lambda _known: None)


def raw(key: str, value: Value) -> tuple[str, bytes]:
    return key, encode_policy(PolicyRecord(key, 1, "other", value))
