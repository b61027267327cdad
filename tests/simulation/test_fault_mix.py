"""Fifteen fixed seeds of the fault mix, and every seed that ever failed, break no law.

Not covered: the thousand random seeds (`python -m sim --scenario mix --seeds 0:1000 --jobs 2`), which are run
by hand; whoever finds one that fails lets the sweep keep it in failing_seeds.json.
"""

from pathlib import Path

import pytest

from sim.run import run
from sim.scenarios import SCENARIOS
from sim.sweep import read_failing_seeds

#: Seconds of simulated rounds: in `make test`, not in `make check`.
pytestmark = pytest.mark.slow

FAILING_SEEDS = Path(__file__).with_name("failing_seeds.json")


@pytest.mark.parametrize("seed", range(15))
def test_whatever_goes_wrong_no_law_is_broken(seed: int) -> None:
    outcome = run(SCENARIOS["mix"], seed=seed)
    assert outcome.violations == []
    # And it was no idle run: something went wrong, and something was served.
    assert outcome.cluster.faults
    assert outcome.recording.admitted.sum() > 0


def test_seeds_that_failed_once_fail_no_more() -> None:
    again = {
        kept.identity: run(kept.as_scenario, policy=kept.policy, seed=kept.seed).violations
        for kept in read_failing_seeds(FAILING_SEEDS)
    }
    assert {identity: broken for identity, broken in again.items() if broken} == {}
