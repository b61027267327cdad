"""One run, from a scenario and a policy to figures and broken laws.

The command line, the sweep and the tests all run scenarios through it.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from rgd.core.policies.model import SharePolicyName
from sim.checkers import Checkers, Violation
from sim.cluster import Cluster
from sim.metrics import Figures, figures_of
from sim.policies import maker_of
from sim.recording import Recording
from sim.scenario import Scenario
from sim.targets import Verdict, verdicts_of

#: As in the daemon: young objects are searched for cycles often, old ones almost never. A large run has
#: millions of objects that stay to its end, and searching all of them took a seventh of its time.
GC_THRESHOLDS: Final = (5_000, 2, 10_000)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a run."""

    scenario: Scenario
    policy: str
    seed: int
    figures: Figures
    verdicts: list[Verdict]
    violations: list[Violation]
    recording: Recording
    cluster: Cluster

    def line(self) -> dict[str, Any]:
        """The object of the command's last line."""
        return {
            "scenario": self.scenario.name,
            "policy": self.policy,
            "seed": self.seed,
            "daemons": self.scenario.daemons,
            **self.figures.as_json(),
        }


def run(
    scenario: Scenario,
    *,
    policy: str = SharePolicyName.MAX_MIN.value,
    seed: int = 0,
    on_round: Callable[[int], None] | None = None,
) -> Outcome:
    """Run a scenario once."""
    with _collecting_rarely():
        cluster = Cluster(
            scenario, seed=seed, make_brain=maker_of(policy, are_apart=scenario.are_apart)
        )
        checkers = Checkers(cluster, policy)
        recording = cluster.run(on_round)
    figures = figures_of(recording)
    targets = scenario.targets if policy == SharePolicyName.MAX_MIN else {}
    return Outcome(
        scenario=scenario,
        policy=policy,
        seed=seed,
        figures=figures,
        verdicts=verdicts_of(figures, targets),
        violations=checkers.finish(recording),
        recording=recording,
        cluster=cluster,
    )


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Let the garbage collector leave old objects alone meanwhile."""
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
