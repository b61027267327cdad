"""The rivals do what their sources say: Pulsar's formula and its traps, and FPS's slowness.

The table is that of the shipped formula, reckoned by hand from Pulsar's code (periods of a minute, quota
100 a second). Not covered: how rivals fare in the scenarios, which docs/convergence.md shows.
"""

import pytest

from rgd.core.exchange.messages import Report
from sim.network import Network
from sim.rivals.pulsar_shipped import local_quota
from sim.rivals.registry import RIVALS
from tests.simulation.trickle import Trickle
from tests.support.cases import cases

#: Seconds of simulated rounds: in `make test`, not in `make check`.
pytestmark = pytest.mark.slow

PERIOD_S = 60
QUOTA = 100


@cases(
    "usage, quotas",
    {
        "pip-82-example": ((10, 50, 30), (11, 55, 33)),
        "saturated-stays": ((80, 20), (80, 20)),
        "saturated-loses-one-to-float32": ((70, 30), (70, 29)),
        "loses-what-it-truncates": ((80, 80, 80), (33, 33, 33)),
        "cut-in-proportion": ((120, 60), (66, 33)),
        "idle-is-pinned-at-one": ((100, 0), (100, 1)),
        "all-idle-have-all": ((0, 0), (100, 100)),
        "capped-by-the-even-start": ((50, 5), (90, 9)),
    },
)
def test_the_shipped_formula_gives(usage: tuple[int, ...], quotas: tuple[int, ...]) -> None:
    period = [own * PERIOD_S for own in usage]
    assert tuple(local_quota(QUOTA, own, sum(period)) for own in period) == quotas


def test_the_shipped_formula_leaves_alone_what_has_no_quota() -> None:
    assert local_quota(-1, 5, 10) == -1


def shipped(wanted: list[float], quota: float = QUOTA, rounds: int = 6) -> Trickle:
    """Stock brokers, a minute a period, after some of them."""
    trickle = Trickle([quota], len(wanted), RIVALS["pulsar-shipped"], round_s=PERIOD_S)
    trickle.wanted = [list(wanted)]
    trickle.run_rounds(rounds)
    return trickle


def test_stock_brokers_grant_the_whole_quota_each_until_they_have_calculated() -> None:
    trickle = Trickle([QUOTA], 3, RIVALS["pulsar-shipped"], round_s=PERIOD_S)
    trickle.wanted = [[150.0, 150.0, 150.0]]
    [admitted] = trickle.run_rounds()
    assert min(admitted) >= QUOTA


def test_a_newcomer_starves_at_one_a_second() -> None:
    trickle = shipped([150, 0])
    trickle.wanted = [[150, 50]]
    [admitted] = trickle.run_rounds(30)
    assert trickle.shares() == [[99, 1]]
    assert admitted[1] < 1.1


def test_a_dead_broker_keeps_its_part() -> None:
    trickle = shipped([50, 50])
    trickle.world.crash(trickle.members[1])
    trickle.wanted = [[100, 0]]
    trickle.run_rounds(30)
    assert trickle.shares()[0][0] == 50


def test_a_drop_to_zero_is_reported_after_five_periods() -> None:
    trickle = shipped([50, 50])
    trickle.wanted = [[100, 0]]
    shares = []
    for _ in range(7):
        trickle.run_rounds()
        shares.append(trickle.shares()[0][0])
    assert 3 <= shares.count(50) <= 5
    assert shares[-1] > 60


def rows_told(trickle: Trickle, periods: int) -> list[int]:
    """Rows in each report of the first broker."""
    told: list[int] = []
    broadcast = trickle.world.broadcast

    def listen(sender: str, message: object) -> None:
        if sender == trickle.members[0].name and isinstance(message, Report):
            told.append(len(message.rows))
        broadcast(sender, message)  # type: ignore[arg-type]

    trickle.world.broadcast = listen  # type: ignore[method-assign]
    trickle.run_rounds(periods)
    return told


def test_usage_within_five_percent_is_reported_each_fifth_period_only() -> None:
    trickle = shipped([50, 20])
    assert sum(rows_told(trickle, 10)) == 2


def test_usage_that_moves_by_more_is_reported_at_once() -> None:
    trickle = shipped([50, 20])
    trickle.wanted = [[60, 20]]
    assert rows_told(trickle, 1) == [1]


def rounds_to_even(policy: str, brokers: int = 5) -> int:
    """Rounds until a newcomer under overload has nine tenths of its part, over the network."""
    quota = 1000.0
    trickle = Trickle([quota], brokers, RIVALS[policy])
    trickle.wanted = [[3 * quota] * (brokers - 1) + [0]]
    trickle.run_rounds(5)
    # Asked for once, so that it takes part, and idle from then on.
    trickle.wanted = [[3 * quota] * (brokers - 1) + [50]]
    trickle.run_rounds()
    trickle.wanted = [[3 * quota] * (brokers - 1) + [0]]
    trickle.run_rounds(80)
    trickle.wanted = [[3 * quota] * brokers]
    for rounds in range(60):
        [admitted] = trickle.run_rounds()
        if admitted[-1] >= 0.9 * quota / brokers:
            assert sum(trickle.shares()[0]) == pytest.approx(quota, rel=0.01)
            return rounds
    raise AssertionError("never")


def test_fps_brokers_come_to_agree_over_the_network() -> None:
    assert 15 <= rounds_to_even("fps") <= 30
    assert rounds_to_even("fps-0.5") <= 6


def test_an_fps_broker_that_went_silent_is_forgotten() -> None:
    trickle = Trickle([1000], 2, RIVALS["fps"])
    trickle.wanted = [[2000, 2000]]
    trickle.run_rounds(5)
    assert trickle.shares()[0] == pytest.approx([500, 500], rel=0.01)
    trickle.world.crash(trickle.members[1])
    trickle.run_rounds(5)
    assert trickle.shares()[0][0] == 1000


def test_rivals_share_the_network_with_its_faults() -> None:
    trickle = Trickle([1000], 2, RIVALS["fps"])
    trickle.world.network = Network(cut={("broker-0001", "broker-0000")})
    trickle.wanted = [[2000, 2000]]
    trickle.run_rounds(5)
    assert trickle.shares()[0] == pytest.approx([1000, 500], rel=0.01)


@pytest.mark.parametrize("policy", sorted(RIVALS))
def test_a_rival_stops_with_a_goodbye_and_checks_itself(policy: str) -> None:
    trickle = Trickle([1000], 2, RIVALS[policy])
    trickle.wanted = [[2000, 2000]]
    trickle.run_rounds(3)
    trickle.world.stop(trickle.members[0])
    trickle.run_rounds(1)
    for member in trickle.members:
        member.brain.validate()
        assert member.brain.shares(trickle.keys[0]) is None
        assert member.brain.tokens(trickle.keys[0], trickle.world.now)[0] >= 0
