"""Brokers that share many groups out in pieces never have more than the quota in force.

Not covered: how long a piece takes on a machine (bench/rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, Bounds
from sim.run import run
from sim.scenarios import SCENARIOS

SMALL = Bounds(sharing=replace(BOUNDS.sharing, piece_groups=2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_a_decrease_waits_for_no_other_piece(seed: int) -> None:
    scenario = replace(
        SCENARIOS["steady"], daemons=8, groups=24, warmup=1, rounds=2, core_bounds=SMALL
    )
    assert run(scenario, policy="max-min", seed=seed).violations == []
