"""Brokers that share many groups out in slices, with rests, never have more than the quota in force.

Slices are small and rests long here, so that few groups wait as long as thousands of them do. Not covered: how long a
slice takes on a machine (bench/rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.broker import rests
from sim.run import run
from sim.scenarios import SCENARIOS

#: A pass over all groups then takes 20 ms: less than half of what a report travels at most.
SLICE_ROWS, REST_NS = 20, 100_000


# Of these seeds, each broke the law while an increase waited for the reports alone.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_an_increase_waits_for_peers_that_have_yet_to_share_out(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(rests, "SLICE_ROWS", SLICE_ROWS)
    monkeypatch.setattr(rests, "REST_NS", REST_NS)
    monkeypatch.setattr(rests, "SLICE_COST_ROWS", 0)
    scenario = replace(SCENARIOS["steady"], daemons=8, groups=24, warmup=1, rounds=2)
    assert run(scenario, policy="max-min", seed=seed).violations == []
