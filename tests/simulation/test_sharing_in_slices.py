"""Brokers that share many groups out in slices, with rests, never have more than the quota in force.

Slices are small and rests long here, so that few groups wait as long as thousands of them do. Not covered: how long a
slice takes on a machine (bench/rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import Bounds, SharingBounds
from sim.run import run
from sim.scenarios import SCENARIOS

#: A pass over all groups then takes 20 ms: less than half of what a report travels at most.
SMALL = Bounds(sharing=SharingBounds(slice_rows=20, slice_cost_rows=0, rest_ns=100_000))


# Of these seeds, each broke the law while an increase waited for the reports alone.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_an_increase_waits_for_peers_that_have_yet_to_share_out(
    seed: int,
) -> None:
    scenario = replace(
        SCENARIOS["steady"], daemons=8, groups=24, warmup=1, rounds=2, core_bounds=SMALL
    )
    assert run(scenario, policy="max-min", seed=seed).violations == []
