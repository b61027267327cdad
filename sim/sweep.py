"""Many seeds of one scenario, and a place where those that failed are kept.

Law: a seed that broke a law is kept with everything that makes its run, and a test replays it ever
after. Keeping the same run twice changes nothing. A seed's outcome does not depend on which process
ran it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from sim.jobs import Journal, run_all
from sim.run import Outcome, run
from sim.scenario import CallerKind, Scenario
from sim.scenarios import SCENARIOS

#: Where failing seeds are kept, from the checkout's root.
FAILING_SEEDS: Final = Path("tests/simulation/failing_seeds.json")

#: Numbers of a scenario that options of the same name replace.
NUMBERS: Final = ("daemons", "groups", "shards", "rounds", "burst_ms", "delay_ms", "loss")
#: What options can change of a scenario, so what makes a run, beside scenario, policy and seed.
_PARAMETERS: Final = (*NUMBERS, "callers", "retries", "says_attempt")


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
    def command(self) -> str:
        """How to repeat it."""
        changed = {
            name: value
            for name, value in self.parameters.items()
            if value != getattr(SCENARIOS[self.scenario], name)
        }
        options = "".join(
            " --unsaid" if name == "says_attempt" else f" --{name.replace('_', '-')} {value}"
            for name, value in changed.items()
            if name != "callers"
        )
        return (
            f"python -m sim --scenario {self.scenario} --policy {self.policy} "
            f"--seed {self.seed}{options}"
        )

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """What makes the run."""
        return self.scenario, self.policy, self.seed, json.dumps(self.parameters, sort_keys=True)


#: What a seed came to: the figures, and what to keep where a law was broken.
SeedOutcome = tuple[dict[str, Any], FailingSeed | None]

#: A process starts in seconds, and a run leaves little in memory.
_SEEDS_PER_PROCESS: Final = 50


def run_seeds(
    scenario: Scenario, policy: str, seeds: Sequence[int], *, jobs: int, journal: Journal
) -> Iterator[SeedOutcome]:
    """Run seeds in several processes; first those of the journal, then the others as they end."""
    settings = {name: getattr(scenario, name) for name in _PARAMETERS}
    keys = {
        seed: json.dumps((scenario.name, policy, seed, settings), sort_keys=True) for seed in seeds
    }
    for seed in seeds:
        if (kept := journal.results.get(keys[seed])) is not None:
            line, failing = kept
            yield line, None if failing is None else FailingSeed(**failing)
    left = [seed for seed in seeds if keys[seed] not in journal.results]
    work = partial(_run_seed, scenario.name, policy, settings)
    for line, failing in run_all(work, left, jobs=jobs, tasks_per_process=_SEEDS_PER_PROCESS):
        journal.add(keys[line["seed"]], (line, failing and asdict(failing)))
        yield line, failing


def _run_seed(name: str, policy: str, settings: dict[str, Any], seed: int) -> SeedOutcome:
    # By name: the workload of a scenario is a closure, which no other process can be given.
    outcome = run(replace(SCENARIOS[name], **settings), policy=policy, seed=seed)
    return outcome.line(), failing_seed_of(outcome) if outcome.violations else None


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
    rows = [asdict(one) for _, one in sorted(kept.items())]
    path.write_text(json.dumps(rows, indent=1) + "\n")
