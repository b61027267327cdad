"""Many seeds of one scenario, and a place where those that failed are kept.

Law: a seed that broke a law is kept with everything that makes its run, and a test replays it ever
after. Keeping the same run twice changes nothing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sim.run import Outcome
from sim.scenario import CallerKind, Scenario
from sim.scenarios import SCENARIOS

#: Where failing seeds are kept, from the checkout's root.
FAILING_SEEDS: Final = Path("tests/simulation/failing_seeds.json")

#: Options that make a run what it is, beside scenario, policy and seed.
_PARAMETERS: Final = (
    "daemons",
    "groups",
    "rounds",
    "burst_ms",
    "callers",
    "retries",
    "says_attempt",
    "delay_ms",
    "loss",
)


@dataclass(frozen=True, slots=True)
class FailingSeed:
    """A run that broke a law."""

    scenario: str
    policy: str
    seed: int
    parameters: dict[str, Any]
    #: Which law, when, how; for people.
    story: str

    @property
    def as_scenario(self) -> Scenario:
        """The scenario as it was run."""
        given = dict(self.parameters)
        if "callers" in given:
            given["callers"] = CallerKind(given["callers"])
        return replace(SCENARIOS[self.scenario], **given)

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """What makes the run."""
        return self.scenario, self.policy, self.seed, json.dumps(self.parameters, sort_keys=True)


def failing_seed_of(outcome: Outcome) -> FailingSeed:
    """What to keep of a run that broke a law."""
    return FailingSeed(
        scenario=outcome.scenario.name,
        policy=outcome.policy,
        seed=outcome.seed,
        parameters={name: getattr(outcome.scenario, name) for name in _PARAMETERS},
        story=str(outcome.violations[0]),
    )


def read_failing_seeds(path: Path) -> list[FailingSeed]:
    """Those that are kept; none where there is no file."""
    if not path.exists():
        return []
    return [FailingSeed(**one) for one in json.loads(path.read_text())]


def keep_failing_seeds(found: Iterable[FailingSeed], path: Path) -> None:
    """Add runs to those that are kept."""
    kept = {one.identity: one for one in (*read_failing_seeds(path), *found)}
    rows = [
        {
            "scenario": one.scenario,
            "policy": one.policy,
            "seed": one.seed,
            "parameters": one.parameters,
            "story": one.story,
        }
        for _, one in sorted(kept.items())
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")
