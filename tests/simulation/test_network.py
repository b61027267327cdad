"""The path that messages take: order, loss, slowness, and faults that cut it.

Not covered: what brokers make of it.
"""

from random import Random

import numpy as np
import pytest

from rgd.core.units import NS_PER_S
from sim.fault import Deed, Fault, random_faults
from sim.network import Network

NAMES = ["a", "b", "c", "d"]


def arrivals(network: Network, count: int = 300, gap_ns: int = 1_000_000) -> list[int]:
    """When each of many messages from a reaches b, in the order in which they were said."""
    dice = Random(1)
    return [
        moment
        for place in range(count)
        for moment, name in network.arrivals(place * gap_ns, "a", ["b"], dice)
    ]


def test_what_is_sent_in_order_is_received_in_order_if_the_network_keeps_it() -> None:
    rough = arrivals(Network())
    assert rough != sorted(rough)
    ordered = arrivals(Network(is_ordered=True))
    assert ordered == sorted(ordered)
    lossy = arrivals(Network(is_ordered=True, loss=0.5, duplication=0.5))
    assert lossy == sorted(lossy)
    assert len(lossy) == pytest.approx(225, abs=45)


def test_stragglers_are_overtaken() -> None:
    network = Network(is_ordered=True, straggling=0.2, straggle_max_ns=NS_PER_S)
    moments = arrivals(network)
    assert moments != sorted(moments)
    assert max(moments) > 300 * 1_000_000 + network.delay_max_ns


def test_a_slow_reader_receives_everything_later() -> None:
    quick, slow = Network(), Network(slow_ns={"b": 5 * NS_PER_S})
    assert [late - 5 * NS_PER_S for late in arrivals(slow)] == arrivals(quick)


@pytest.mark.parametrize(
    ("deed", "cut"),
    [
        (Deed.CUT, {"aa", "ab", "ba", "ac", "ca", "ad", "da"}),
        (Deed.MUTE, {"aa", "ab", "ac", "ad"}),
        (Deed.DEAF, {"aa", "ba", "ca", "da"}),
        (Deed.SPLIT, {"ab", "ba", "ac", "ca", "ad", "da"}),
        (Deed.CRASH, set()),
    ],
)
def test_each_deed_cuts_its_roads(deed: Deed, cut: set[str]) -> None:
    assert Fault(deed, (0,), 0).cut_pairs(NAMES) == {(pair[0], pair[1]) for pair in cut}


def test_random_faults_are_over_in_time_and_never_two_at_one_place() -> None:
    seen = set()
    for seed in range(20):
        faults = random_faults(
            np.random.default_rng(seed), daemons=4, begin_ns=0, end_ns=10**11, round_ns=NS_PER_S
        )
        seen |= {fault.deed for fault in faults}
        assert all(fault.at_ns < (fault.end_ns or 0) < 10**11 for fault in faults)
        for place in range(4):
            mine = [fault for fault in faults if place in fault.places]
            ends = [fault.end_ns or 0 for fault in mine]
            assert all(end <= later.at_ns for end, later in zip(ends, mine[1:], strict=False))
    assert seen == set(Deed) - {Deed.JOIN, Deed.DUPLICATE, Deed.CLOCK, Deed.PLANE}
