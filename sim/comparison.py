"""What docs/convergence.md compares: which runs, and how their figures become tables.

Law: a table is made of runs that differ in its rows and columns only: one seed, the same load and the
same network for every policy. The same plan gives the same tables.

A `Plan` is the runs of all tables; two tables that need the same run share it. Running them, and where
the tables go, is the business of `sim.convergence`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sim.model.tally import Figures
from sim.policies import POLICIES
from sim.scenario import CallerKind, Scenario
from sim.scenarios import SCENARIOS

SEED: Final = 1

#: The policies that are drawn side by side, best known first.
DRAWN: Final = ("max-min", "pulsar-shipped", "steal", "fps")

#: The step scenarios of the issue.
STEPS: Final = ("newcomer", "spare", "swap", "heavy-tail")

FAULTS: Final = ("lossy", "partition", "cut-off", "mute", "skew")

#: Scenarios without faults that nothing else shows.
OTHERS: Final = ("joiner", "on-off", "diurnal", "flash-crowd", "poisson", "waiting", "leasing")


#: How much of the use without retries unsaid retries may cost.
RETRIES_COST_MAX: Final = 0.01

#: What the issue asks of `noise` with the default burst.
BURST_TARGETS: Final = {"utilisation": ">= 0.94"}


@dataclass(frozen=True, slots=True)
class Run:
    """One run; `options` are fields of the scenario that are replaced."""

    scenario: str
    policy: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def as_scenario(self) -> Scenario:
        """The scenario with its options."""
        scenario = replace(SCENARIOS[self.scenario], **dict(self.options))
        if self.scenario == "noise" and scenario.burst_ms:
            return replace(scenario, targets=BURST_TARGETS)
        if scenario.callers is CallerKind.RETRY:
            # What is asked of retries is in their own table.
            return replace(scenario, targets={})
        return scenario


@dataclass(frozen=True, slots=True)
class Result:
    """What a run said, and how many laws it broke."""

    line: Mapping[str, Any]
    violations: int
    #: (figure, what was asked of it, whether it was reached).
    verdicts: tuple[tuple[str, str, bool], ...] = ()


Results = Mapping[Run, Result]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: all of it, or enough to see that everything works."""

    #: Compared where runs are short; elsewhere those that are drawn.
    policies: Sequence[str]
    #: Rounds of the step scenarios, by how many daemons they have.
    step_rounds: Mapping[int, int]
    #: Of max-min, and of the others; the next one as well.
    noise_rounds: tuple[int, int]
    mix_rounds: tuple[int, int]
    fault_rounds: int
    retries: Sequence[int]
    retry_rounds: int
    #: Rounds of five seconds, an hour of them in full.
    doorman_rounds: int
    doorman_daemons: int
    #: Groups of the model's sweeps, on a hundred daemons each.
    model_groups: int


FULL: Final = Size(
    policies=DRAWN,
    step_rounds={2: 36, 10: 36, 100: 12},
    noise_rounds=(1_000, 120),
    mix_rounds=(500, 150),
    fault_rounds=30,
    retries=(0, 1, 5, 20),
    retry_rounds=60,
    doorman_rounds=354,
    doorman_daemons=45,
    model_groups=5_000,
)
QUICK: Final = Size(
    policies=DRAWN,
    step_rounds={2: 18, 10: 18},
    noise_rounds=(40, 40),
    mix_rounds=(150, 150),
    fault_rounds=20,
    retries=(0, 5),
    retry_rounds=18,
    doorman_rounds=330,
    doorman_daemons=10,
    model_groups=500,
)

#: With a hundred daemons a run is long, so the rivals are left out.
MANY_DAEMONS: Final = 100


@dataclass(frozen=True, slots=True)
class Table:
    """A named table: its runs, and how they are written."""

    name: str
    runs: Sequence[Run]
    write: Callable[[Results], str]


def tables(size: Size) -> list[Table]:
    """Every table of the document."""
    measured = [
        _steps(size),
        _noise(size),
        _two_dimensions(size),
        _retries(size),
        _by_policy(
            "faults",
            [
                run_of(scenario, policy, rounds=size.fault_rounds)
                for scenario in FAULTS
                for policy in size.policies
            ],
        ),
        _by_policy(
            "doorman",
            [
                # An hour is long: it is compared with what doorman's authors published.
                run_of(
                    "doorman",
                    POLICIES[0],
                    rounds=size.doorman_rounds,
                    daemons=size.doorman_daemons,
                )
            ],
        ),
        _others(size),
    ]
    return [_asked(measured), *measured]


def model_table(figures: Mapping[str, Figures], groups: int) -> str:
    """The figures of the model's sweeps, by workload."""
    names = ("within", "utilisation", "movement", "overshoot_round", "overshoot_10")
    rows = [
        [
            workload,
            "never" if one.rounds_to_fair is None else str(one.rounds_to_fair),
            *(f"{getattr(one, name):.4f}" for name in names),
            _figure(one.lowest_ratio),
        ]
        for workload, one in figures.items()
    ]
    header = ["rounds to fair", "shares within 2 %", "use", "movement", "most in a round"]
    return markdown(
        [f"100 daemons, {groups:,} groups", *header, "most in 10", "lowest ratio"], rows
    )


def _asked(measured: Sequence[Table]) -> Table:
    """What the issue asks of max-min, over the runs of all other tables."""
    runs = [
        run
        for run in dict.fromkeys(run for table in measured for run in table.runs)
        if run.policy == POLICIES[0] and run.as_scenario.targets
    ]

    def write(results: Results) -> str:
        rows = [
            [f"{name_of(run)}: {figure}", asked, _figures(results[run], [figure])[0], _met(is_met)]
            for run in runs
            for figure, asked, is_met in results[run].verdicts
        ]
        return markdown(["max-min", "asked", "measured", "reached"], rows)

    return Table("asked", runs, write)


def name_of(run: Run) -> str:
    """A run in words."""
    return ", ".join([run.scenario, *(f"{name} {value}" for name, value in run.options)])


def _met(is_met: bool) -> str:  # noqa: FBT001 -- a verdict
    return "yes" if is_met else "**no**"


def step_runs(size: Size) -> dict[str, dict[str, Run]]:
    """The runs that are drawn: scenario -> policy -> run."""
    return {
        scenario: {
            policy: run_of(scenario, policy, daemons=10, rounds=size.step_rounds[10])
            for policy in DRAWN
        }
        for scenario in STEPS
    }


def run_of(scenario: str, policy: str, **options: Any) -> Run:
    """A run with options by name."""
    return Run(scenario, policy, tuple(sorted(options.items())))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first column is words, the others are figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rounds_cell(result: Result) -> str:
    """Rounds to fair and the lowest ratio."""
    rounds, lowest = result.line["rounds_to_fair"], result.line["lowest_ratio"]
    return f"{'never' if rounds is None else rounds} ({_figure(lowest)})"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 0.1 else f"{value:.3f}"


def _coarse(daemons: int) -> dict[str, float]:
    # Fewer and larger requests, so that a hundred daemons take minutes and not hours.
    return {"asks_per_s": 50.0} if daemons >= MANY_DAEMONS else {}


def _policies(size: Size, daemons: int) -> Sequence[str]:
    return DRAWN[:1] if daemons >= MANY_DAEMONS else size.policies


def _steps(size: Size) -> Table:
    runs = {
        (scenario, daemons, policy): run_of(
            scenario, policy, daemons=daemons, rounds=rounds, **_coarse(daemons)
        )
        for daemons, rounds in size.step_rounds.items()
        for scenario in STEPS
        for policy in _policies(size, daemons)
    }

    def write(results: Results) -> str:
        rows = []
        for scenario in STEPS:
            for daemons in size.step_rounds:
                cells = [
                    rounds_cell(results[runs[scenario, daemons, policy]])
                    if (scenario, daemons, policy) in runs
                    else ""
                    for policy in size.policies
                ]
                judged = size.step_rounds[daemons] // 3
                rows.append([f"{scenario}, N = {daemons} ({judged} rounds a step)", *cells])
        return markdown(["scenario", *size.policies], rows)

    return Table("steps", list(runs.values()), write)


def _noise(size: Size) -> Table:
    rounds = _rounds_by_policy(size.noise_rounds)
    runs = {
        (policy, burst): run_of("noise", policy, rounds=rounds[policy], burst_ms=burst)
        for policy in DRAWN
        for burst in (0, 250)
    }

    def write(results: Results) -> str:
        header = ["policy", "rounds"]
        header += ["use, burst 0", "movement, burst 0", "use, 250 ms", "movement, 250 ms"]
        rows = []
        for policy in DRAWN:
            lines = [results[runs[policy, burst]].line for burst in (0, 250)]
            cells = [_figure(line[name]) for line in lines for name in ("utilisation", "movement")]
            rows.append([policy, f"{rounds[policy]:,}", *cells])
        return markdown(header, rows)

    return Table("noise", list(runs.values()), write)


def _two_dimensions(size: Size) -> Table:
    rounds = _rounds_by_policy(size.mix_rounds)
    runs = [run_of("two-dimensions", policy, rounds=rounds[policy]) for policy in DRAWN]

    def write(results: Results) -> str:
        names = ("utilisation", "lowest_ratio", "rounds_to_fair")
        rows = [
            [run.policy, f"{rounds[run.policy]:,}", *_figures(results[run], names)] for run in runs
        ]
        header = ["policy, 1,000 mixes", "rounds", "use of the fuller dimension"]
        return markdown([*header, "lowest ratio", "rounds to fair"], rows)

    return Table("two-dimensions", runs, write)


def _rounds_by_policy(rounds: tuple[int, int]) -> dict[str, int]:
    own, others = rounds
    return {policy: own if policy == DRAWN[0] else others for policy in DRAWN}


def _retries(size: Size) -> Table:
    runs = {
        (scenario, retries, says): run_of(
            scenario,
            "max-min",
            retries=retries,
            says_attempt=says,
            callers=CallerKind.RETRY,
            rounds=size.retry_rounds,
        )
        for scenario in ("swap", "poisson", "growth")
        for retries in size.retries
        for says in (True, False)
    }

    def write(results: Results) -> str:
        rows = []
        for (scenario, retries, says), run in runs.items():
            used = results[run].line["utilisation"]
            without = results[runs[scenario, 0, True]].line["utilisation"]
            cells = _figures(
                results[run], ("rounds_to_fair", "utilisation", "movement", "lowest_ratio")
            )
            name = f"{scenario}, {retries} retries, {'said' if says else 'unsaid'}"
            is_met = used >= (1 - RETRIES_COST_MAX) * without
            rows.append([name, *cells, f"{used / without:.3f}", _met(is_met)])
        header = ["rounds to fair", "use", "movement", "lowest ratio", "use / use without retries"]
        return markdown(["scenario", *header, "within 1 %"], rows)

    return Table("retries", list(runs.values()), write)


def _by_policy(name: str, runs: Sequence[Run]) -> Table:
    names = ("rounds_to_fair", "utilisation", "overshoot_round", "overshoot_10", "lowest_ratio")

    def write(results: Results) -> str:
        rows = [[f"{run.scenario}, {run.policy}", *_figures(results[run], names)] for run in runs]
        header = ["rounds to fair", "use", "most in a round", "most in 10", "lowest ratio"]
        return markdown(["scenario and policy", *header], rows)

    return Table(name, runs, write)


def _others(size: Size) -> Table:
    runs = [run_of(scenario, "max-min", rounds=2 * size.fault_rounds) for scenario in OTHERS]
    names = ("rounds_to_fair", "utilisation", "movement", "overshoot_round", "overshoot_10")

    def write(results: Results) -> str:
        rows = [
            [run.scenario, *_figures(results[run], names), str(results[run].violations)]
            for run in runs
        ]
        header = ["rounds to fair", "use", "movement", "most in a round", "most in 10"]
        return markdown(["scenario, max-min", *header, "laws broken"], rows)

    return Table("others", runs, write)


def _figures(result: Result, names: Sequence[str]) -> list[str]:
    cells = []
    for name in names:
        value = result.line[name]
        if name == "rounds_to_fair":
            cells.append("never" if value is None else str(value))
        else:
            cells.append(_figure(value))
    return cells
