"""Rates, backlog quotas: what another daemon wrote meanwhile is kept, and nothing is left behind.

The daemon here takes a write of somebody else's in between each look and write. Not covered: how a real
daemon does that (tests of rgd.app), paths and codes (tests/integration/http).
"""

from collections.abc import Awaitable, Callable

import pytest

from rgd.adapters.http.pulsar_admin import rates
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH
from rgd.adapters.http.pulsar_admin.rates import RateCalls
from rgd.adapters.http.reply import Call
from rgd.core.policies.model import LocalLimit, Rates
from rgd.core.policies.records import LIMIT_NAMESPACE, Change, Value
from tests.unit.adapters.http.small_daemon import SmallDaemon

PATH = {"tenant": "acme", "namespace": "orders"}


class BusyDaemon(SmallDaemon):
    """Somebody else writes `theirs` just before each write."""

    theirs: Value = None

    async def change(self, key: str, change: Change) -> None:
        await super().change(key, lambda _known: self.theirs)
        await super().change(key, change)


@pytest.fixture
def daemon() -> BusyDaemon:
    return BusyDaemon()


def call(body: bytes = b"", **query: str) -> Call:
    return Call(PATH, {}, body, query)


@pytest.mark.parametrize(
    ("theirs", "act", "left"),
    [
        pytest.param(
            LocalLimit(publish=Rates(7)),
            lambda dispatch: dispatch.put(call(b'{"dispatchThrottlingRateInMsg":1}')),
            LocalLimit(publish=Rates(7), dispatch=Rates(1000)),
            id="set beside",
        ),
        pytest.param(
            LocalLimit(publish=Rates(7), dispatch=Rates(8)),
            lambda dispatch: dispatch.delete(call()),
            LocalLimit(publish=Rates(7)),
            id="taken away beside",
        ),
        pytest.param(
            LocalLimit(dispatch=Rates(8), dispatch_period_s=2),
            lambda dispatch: dispatch.delete(call()),
            None,
            id="the last one taken away",
        ),
    ],
)
async def test_a_rate_is_merged_into_what_the_table_holds(
    daemon: BusyDaemon,
    theirs: LocalLimit,
    act: Callable[[RateCalls], Awaitable[object]],
    left: LocalLimit | None,
) -> None:
    daemon.theirs = theirs
    await act(RateCalls(daemon, rates.NAMESPACE, DISPATCH))

    assert daemon.snapshot().limits.namespaces.get("acme/orders") == left
    assert daemon.value(LIMIT_NAMESPACE + "acme/orders") == left
