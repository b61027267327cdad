"""Several daemons share one quota: how soon, how exactly, and never more than there is.

Laws 1, 2, 4 and 6 of docs/architecture.md over time, with evenly spaced load. Not covered: noise, two
dimensions, and the estimator of demand.
"""

from collections.abc import Sequence

import pytest

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import MILLI, NS_PER_MS, Pair, to_milli
from sim.network import Network
from tests.simulation.worlds import (
    REQUEST,
    SETTINGS,
    Cluster,
    assert_no_overshoot,
    gold_snapshot,
    watch_conservation,
)

pytestmark = pytest.mark.slow

QUOTA = 300.0


def fair(wanted: Sequence[float]) -> list[float]:
    """Max-min of what the loads really want."""
    rows = [Row(f"b{place:02}", wanted=Pair(to_milli(rate))) for place, rate in enumerate(wanted)]
    quota = Rates(to_milli(QUOTA))
    shares = allocate(SharePolicyName.MAX_MIN, quota, rows, floor_ppm=SETTINGS.floor_ppm)
    return [(share.messages or 0) / MILLI for share in shares]


STEPS = [
    pytest.param([210, 60, 30], id="skewed"),
    pytest.param([270, 270, 0], id="one-idle"),
    pytest.param([270, 270, 270], id="it-wakes"),
    pytest.param([15, 270, 270], id="one-calms-down"),
    pytest.param([240, 60, 0], id="80-20"),
    pytest.param([0, 0, 0], id="all-idle"),
    pytest.param([270, 0, 0], id="only-one"),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("before", [[210, 60, 30], [0, 120, 400], [0, 0, 0]], ids=["a", "b", "c"])
def test_a_round_after_a_step_in_demand_the_shares_are_fair(
    before: list[float], step: list[float]
) -> None:
    cluster = Cluster(before, quota=QUOTA)
    cluster.run_s(4)
    for load, rate in zip(cluster.loads, step, strict=True):
        load.set_rate(rate)
    cluster.run_s(1.2)
    for share, part in zip(cluster.shares(), fair(step), strict=True):
        # Where nobody ever asked, nothing is in use; and a round has whole messages.
        assert share == -1 or share == pytest.approx(part, rel=0.02, abs=1)


def seconds_until_fair(cluster: Cluster, wanted: Sequence[float]) -> float:
    """From now until the share of each member that is asked stays within 5 % of its part for a second."""
    begun_s = fair_s = cluster.now_s
    while cluster.now_s < fair_s + 1:
        cluster.run_s(0.01)
        pairs = zip(wanted, cluster.shares(), fair(wanted), strict=True)
        if any(rate and share != pytest.approx(part, rel=0.05) for rate, share, part in pairs):
            fair_s = cluster.now_s
        assert fair_s < begun_s + 5
    return fair_s - begun_s


@pytest.mark.parametrize("phase_s", [0.05, 0.5, 0.9])
def test_shares_are_fair_0_3_s_after_one_of_ten_wakes_or_stops(phase_s: float) -> None:
    busy, idle = [120.0] * 10, [120.0] * 9 + [0.0]
    cluster = Cluster(idle, quota=QUOTA)
    cluster.run_s(4 + phase_s)
    cluster.loads[-1].set_rate(busy[-1])
    assert seconds_until_fair(cluster, busy) <= 0.3
    cluster.run_s(2)
    cluster.loads[-1].set_rate(0)
    assert seconds_until_fair(cluster, idle) <= 0.3


def test_callers_that_come_in_bursts_keep_their_share_between_them() -> None:
    cluster = Cluster([270, 270, 270], quota=QUOTA)
    cluster.run_s(4)
    lowest = []
    for _ in range(8):
        cluster.loads[0].set_rate(0)
        cluster.run_s(0.5)
        lowest.append(cluster.shares()[0])
        cluster.loads[0].set_rate(270)
        cluster.run_s(0.5)
    # The first lull is taken for an end, because nothing is known of bursts.
    assert min(lowest[1:]) >= 0.95 * QUOTA / 3


def ask(cluster: Cluster, messages: int, attempt: int = 1) -> None:
    """Ask the last member, again and again: for more 10 ms after a grant, else when the answer says so."""
    request = REQUEST._replace(messages=messages, attempt=attempt)
    answer = cluster.world.acquire(cluster.members[-1], request)
    wait_ns = max(10, answer.retry_after_ms) * NS_PER_MS
    attempt = 1 if answer.granted else attempt + 1
    cluster.world.at(cluster.world.now + wait_ns, ask, cluster, messages, attempt)


def test_a_caller_that_waits_as_long_as_it_was_told_keeps_its_share() -> None:
    """It asks for one at a time, and then for 40 at once, which takes 400 ms at its share."""
    cluster, shares = Cluster([270, 270, 100], quota=QUOTA), list[float]()
    cluster.run_s(6)
    cluster.loads[-1].set_rate(0)
    ask(cluster, 40)
    for _ in range(40):
        cluster.run_s(0.1)
        shares.append(cluster.shares()[-1])
    assert min(shares) >= 0.9 * QUOTA / 3


@pytest.mark.parametrize("count", [1, 50])
def test_workers_that_ask_only_after_a_grant_get_their_share(count: int) -> None:
    """They come in one instant, mark their retries, and see the quota low for a while."""
    cluster = Cluster([270, 270, 0], quota=QUOTA)
    cluster.run_s(4)
    for _ in range(count):
        ask(cluster, 3)
    for low in (QUOTA, QUOTA / 10, QUOTA / 100):
        cluster.set_policies(gold_snapshot(low))
        cluster.run_s(10)
        cluster.set_policies(gold_snapshot(QUOTA))
        cluster.run_s(30)
        assert cluster.shares()[-1] >= 0.95 * QUOTA / 3


def test_nothing_is_refused_while_some_of_the_quota_is_unclaimed() -> None:
    """Law 4: an 80/20 want on a 70/30 split becomes 80/20."""
    cluster = Cluster([210, 90], quota=QUOTA)
    cluster.run_s(4)
    for load, rate in zip(cluster.loads, [237, 60], strict=True):
        load.set_rate(rate)
    cluster.run_s(4)
    assert cluster.admitted_s(5.5, 8) == pytest.approx([237, 60], rel=0.01)


@pytest.mark.parametrize("delay_ms", [5, 50, 100])
@pytest.mark.parametrize("seed", range(2))
def test_while_reports_travel_no_more_is_handed_out_than_there_is(delay_ms: int, seed: int) -> None:
    network = Network(delay_min_ns=NS_PER_MS, delay_max_ns=delay_ms * NS_PER_MS)
    cluster = Cluster([270, 90, 30, 0], quota=QUOTA, seed=seed, network=network)
    sums = watch_conservation(cluster)
    cluster.run_s(4)
    for rates in ([30, 270, 90, 0], [90, 90, 90, 90], [0, 0, 300, 15], [270, 270, 270, 270]):
        # Steps at any moment of the round.
        cluster.run_s(0.3)
        for load, rate in zip(cluster.loads, rates, strict=True):
            load.set_rate(rate)
        cluster.run_s(1.7)
    # Steps follow one another faster than reports of 100 ms travel.
    assert max(sums) <= (1.01 if delay_ms <= 50 else 1.1)
    assert_no_overshoot(cluster, QUOTA, 0, 12)


@pytest.mark.parametrize("loss", [0.05, 0.3])
def test_loss_delays_and_doubles_only_delay(loss: float) -> None:
    network = Network(
        delay_min_ns=NS_PER_MS, delay_max_ns=80 * NS_PER_MS, loss=loss, duplication=0.3
    )
    cluster = Cluster([270, 30, 270, 60], quota=QUOTA, seed=7, network=network)
    cluster.run_s(6)
    for load, rate in zip(cluster.loads, [30, 270, 15, 270], strict=True):
        load.set_rate(rate)
    cluster.run_s(4)
    # And once nothing is lost any more, everybody holds what was told.
    network.loss = 0
    cluster.run_s(2.5)
    assert cluster.agrees()
    assert cluster.shares() == pytest.approx(fair([30, 270, 15, 270]), rel=0.05)


def test_a_message_of_ours_that_we_alone_missed_is_made_good_in_the_next_round() -> None:
    cluster = Cluster([270, 30], quota=QUOTA)
    cluster.run_s(4.5)
    name = cluster.members[0].name
    cluster.loads[0].set_rate(60)
    cluster.world.network.cut = {(name, name)}
    cluster.run_s(1)
    cluster.heal()
    assert not cluster.agrees()
    # Fewer rounds than until everything is told anyhow.
    cluster.run_s(1)
    assert cluster.agrees()


def test_a_policy_of_pip_82_gets_there_as_well() -> None:
    settings = BrokerSettings(Sender("", 0), policy=SharePolicyName.RESIDUAL)
    cluster = Cluster([270, 270], quota=QUOTA, settings=settings)
    cluster.run_s(8)
    assert sum(cluster.admitted_s(5, 8)) == pytest.approx(QUOTA, rel=0.05)
