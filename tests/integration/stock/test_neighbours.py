"""A stock broker and rgd daemons hold quotas together: what each side admits, on a live Pulsar with the transport.

Several groups go through their scenarios in the same periods, because periods are what takes time. Not covered:
many stock brokers (tests/simulation/test_stock.py), and how soon a daemon follows a quota (test_following.py).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.stock.neighbours import PERIOD_S, Load, Neighbourhood, RgdLoad, StockLoad
from tests.support.pulsar_standalone import PulsarStandalone

pytestmark = [pytest.mark.pulsar, pytest.mark.slow, pytest.mark.xdist_group("neighbours")]

QUOTA: Final = 100.0
#: More than anybody gets.
SATURATED: Final = 150.0
#: How far from its part anybody may be, and all together from what they are to have.
NEAR: Final = 0.15
SUM_MAX: Final = 1.05
#: In periods: for what rates are measured over, and until when they are those of the parts (nine on a quiet machine).
MEASURED: Final = 6
SHARED_MAX: Final = 60

ROUND_S: Final = 1.0
SOON_S: Final = 60.0


@pytest.fixture(scope="module")
def stock_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarStandalone]:
    """A Pulsar whose broker reports usage. The one that all tests share has no transport."""
    folder = tmp_path_factory.mktemp("stock-pulsar")
    with PulsarStandalone(folder, usage_period_s=PERIOD_S) as apache:
        yield apache


@pytest.fixture
async def neighbourhood(
    stock_pulsar: PulsarStandalone, tmp_path: Path
) -> AsyncIterator[Neighbourhood]:
    # Groups of several shards: what stock brokers report is of all of them.
    settings = {"RGD_EXCHANGE__SHARDS": "4"}
    async with Neighbourhood(stock_pulsar, tmp_path, ("rgd-1", "rgd-2"), settings) as neighbours:
        yield neighbours


async def test_quotas_are_shared_with_a_stock_broker(neighbourhood: Neighbourhood) -> None:
    houses, began = neighbourhood, neighbourhood.apache.log.stat().st_size
    waking, uneven, throttled, thirds = [
        await houses.group(name, QUOTA) for name in ("waking", "uneven", "throttled", "thirds")
    ]
    # Whoever is to begin in a group begins alone.
    waking_loads = await both(houses, waking, rgd=SATURATED, stock=0)
    uneven_loads = await both(houses, uneven, rgd=90, stock=10)
    throttled_loads = await both(houses, throttled, rgd=0, stock=SATURATED)
    thirds_loads: tuple[Load, ...] = (
        *await both(houses, thirds, rgd=SATURATED, stock=SATURATED),
        await houses.rgd_load("rgd-2", thirds, SATURATED),
    )
    # An idle stock broker costs nobody anything, and what is wanted is had.
    thirds_shared = (thirds_loads, [QUOTA / 3] * 3)
    await until_shared(
        houses,
        (waking_loads, [QUOTA, 0]),
        (uneven_loads, [90, 10]),
        (throttled_loads, [0, QUOTA]),
        thirds_shared,
    )
    # The stock broker's traffic lowers rgd's share in the round after its report.
    lowering = asyncio.create_task(rounds_until_lowered(houses, "waking"))
    for load in (*waking_loads, *uneven_loads, *throttled_loads):
        load.wanted_per_s = SATURATED
    assert await lowering <= 2
    # rgd's usage throttles the stock broker's producer.
    halves = [QUOTA / 2] * 2
    pairs = [(loads, halves) for loads in (waking_loads, uneven_loads, throttled_loads)]
    await until_shared(houses, *pairs, thirds_shared)

    # Two ends at once: of a daemon, and of a quota.
    await houses.operator.call("PUT", "resourcegroups/uneven", {"publishRateInMsgs": 2 * QUOTA})
    await houses.daemons["rgd-2"].kill()
    await until(lambda: sequence_if(houses, "uneven", is_doubled))
    await until_shared(houses, (thirds_loads[:2], halves))
    assert await dialects(houses) == {
        "rgd-1": ["compact", "pulsar"],
        houses.apache.service_url: ["pulsar"],
    }
    await until(lambda: is_well(houses))
    # On a busy machine Pulsar has errors of its own.
    assert not re.search(rb" ERROR \S*resourcegroup", houses.apache.log.read_bytes()[began:])


async def both(
    houses: Neighbourhood, namespace: str, *, rgd: float, stock: float
) -> tuple[RgdLoad, StockLoad]:
    """Load on both sides, of so many messages a second each."""
    return (
        await houses.rgd_load("rgd-1", namespace, rgd),
        await houses.stock_load(namespace, stock),
    )


async def until_shared(
    houses: Neighbourhood, *groups: tuple[Sequence[Load], Sequence[float]]
) -> None:
    """Wait until each of a group's loads has its part, and all of them together no more."""
    for _ in range(SHARED_MAX):
        await houses.periods(1)
        if all(is_shared(*group) for group in groups):
            return
    pytest.fail("the parts were not reached; above is what passed in each period")


def is_shared(loads: Sequence[Load], parts: Sequence[float]) -> bool:
    rates = [load.passed.rate(MEASURED) for load in loads]
    return rates == pytest.approx(parts, rel=NEAR) and sum(rates) <= sum(parts) * SUM_MAX


async def rounds_until_lowered(houses: Neighbourhood, group: str) -> int:
    """The rounds of the daemon after a stock broker's first report of its load in a group in which its share was seen not lowered.

    Not the rounds until it is seen lowered: on a busy machine the test may come to look long after that.
    """
    first = await until(lambda: sequence_if(houses, group, has_stock_row))
    seen = [first]

    async def lowered() -> int | None:
        now = await sequence(houses)
        if is_lowered((await houses.clients["rgd-1"].group(group))["publish"]):
            return now
        seen.append(now)
        return None

    await until(lowered)
    return seen[-1] - first


def has_stock_row(publish: dict[str, Any]) -> bool:
    """Whether it wants enough to lower a share: in its first period it may have sent little."""
    return any(
        row["broker"].startswith("pulsar:") and row["wanted"]["messages"] > 2 * NEAR * QUOTA
        for row in publish["rows"]
    )


def is_lowered(publish: dict[str, Any]) -> bool:
    return bool(publish["share"]["messages"] < QUOTA * (1 - NEAR))


def is_doubled(publish: dict[str, Any]) -> bool:
    return bool(publish["quota"]["messages"] == 2 * QUOTA)


async def sequence_if(
    houses: Neighbourhood, group: str, holds: Callable[[dict[str, Any]], bool]
) -> int | None:
    """The number of the daemon's last report, if something holds of a group there."""
    if not holds((await houses.clients["rgd-1"].group(group))["publish"]):
        return None
    return await sequence(houses)


async def sequence(houses: Neighbourhood) -> int:
    """The number of the daemon's last report."""
    brokers = await houses.clients["rgd-1"].brokers()
    return next(int(view["sequence"]) for view in brokers if view["self"])


async def until(ask: Callable[[], Awaitable[int | None]]) -> int:
    """The answer, as soon as there is one."""
    async with asyncio.timeout(SOON_S):
        while not (answer := await ask()):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(ROUND_S / 10)
    return answer


async def is_well(houses: Neighbourhood) -> int | None:
    """Whether nothing is degraded any more: on a busy machine one poll of Pulsar may have failed just now."""
    return int(await houses.clients["rgd-1"].readiness() == {"ready": True})


async def dialects(houses: Neighbourhood) -> dict[str, list[str]]:
    """Who speaks what."""
    return {view["broker"]: view["dialects"] for view in await houses.clients["rgd-1"].brokers()}
