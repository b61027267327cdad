"""`python -m sim.convergence --out docs`: makes the tables and pictures of docs/convergence.md.

Law: every figure in the document between markers was made by one run of this command; the prose around
them is written by hand and stays as it is. The document names the commit that the figures are of.

Tables go between `<!-- table NAME -->` and `<!-- end NAME -->` in `convergence.md`, pictures into the
folder `convergence` beside it. What is compared is in `sim.comparison`. `--only` makes some tables, and
`--keep` continues a command that was stopped. Exit codes: 0 done, 1 a marker is missing, 2 asked wrongly.
"""

import argparse
import dataclasses
import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from sim import jobs
from sim.comparison import (
    FULL,
    QUICK,
    SEED,
    Result,
    Results,
    Run,
    Size,
    Table,
    model_table,
    name_of,
    step_runs,
    tables,
)
from sim.exiting import exit_with
from sim.jobs import Journal
from sim.model.sweep import Sweep
from sim.model.sweep import run as run_sweep
from sim.model.tally import Figures
from sim.model.workload import STEPS, Workload, WorkloadName
from sim.output import table_of
from sim.plots import Cell, draw_comparison, draw_run
from sim.run import Outcome, run

DOCUMENT: Final = "convergence.md"
PICTURES: Final = "convergence"

#: The table that the vectorised model fills.
MODEL: Final = "model"

#: The sentence that names the commit.
MADE: Final = "made"

PROCESSES: Final = 2

#: Rounds before the last step that are drawn.
ROUNDS_BEFORE: Final = 3

_Item = TypeVar("_Item")


class MarkerMissing(Exception):
    """The document has no place for a table."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    document = options.out / DOCUMENT
    if not document.is_file():
        parser.error(f"{document} is not there: it holds the prose around the tables")
    size = QUICK if options.quick else FULL
    known = tables(size)
    names = [MADE, *(table.name for table in known), MODEL, PICTURES]
    if unknown := set(options.only or ()) - set(names):
        parser.error(f"--only: no {', '.join(sorted(unknown))}; the tables are {', '.join(names)}")
    chosen = options.only or names
    try:
        text = document.read_text()
        for name in chosen:
            if name != PICTURES:
                find_marks(text, name)
        # The commit at the start: the code may change before the last run has ended.
        commit = made_of()
        results = _make(known, chosen, size, options)
    except MarkerMissing as missing:
        print(f"sim.convergence: {document}: {missing}", file=sys.stderr)
        return 1
    for name, table in {MADE: commit, **results}.items():
        if name in chosen:
            text = put(text, name, table)
    document.write_text(text)
    return 0


def _make(
    known: Sequence[Table], chosen: Sequence[str], size: Size, options: argparse.Namespace
) -> dict[str, str]:
    """Run what the chosen tables need; each table's text. Draws the pictures, if they are chosen."""
    wanted = [table for table in known if table.name in chosen]
    plan = step_runs(size) if PICTURES in chosen else {}
    drawn = [one for row in plan.values() for one in row.values()]
    results, cells = run_all(wanted, options.jobs, Journal(options.keep), drawn)
    texts = {table.name: table.write(results) for table in wanted}
    if MODEL in chosen:
        figures = sweep_all(size.model_groups, options.jobs)
        texts[MODEL] = model_table(figures, size.model_groups)
    if plan:
        draw(plan, cells, options.out / PICTURES)
    return texts


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sim.convergence", description="Make the tables of docs/convergence.md."
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help=f"where {DOCUMENT} is")
    add("--quick", action="store_true", help="fewer rounds, at most 10 daemons")
    add("--only", nargs="+", metavar="TABLE", help=f"these tables only, or {PICTURES}")
    add("--keep", type=Path, metavar="FILE", help="a journal of results, which are not run again")
    add("--jobs", type=int, default=PROCESSES, metavar="N", help="processes")
    return parser


def made_of() -> str:
    """One sentence: which commit the figures are of."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        command = ("git", *words)
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603
        return done.stdout.strip()

    try:
        commit = f"commit `{git('rev-parse', '--short=12', 'HEAD')}`"
        if git("status", "--porcelain", "--", "rgd", "sim"):
            commit += " with changes that are not in it"
    except (OSError, subprocess.CalledProcessError):
        commit = "a copy of the sources without git"
    return f"These figures are of {commit} (code hash `{jobs.code_hash()}`)."


def run_all(
    wanted: Sequence[Table], processes: int, journal: Journal, drawn: Sequence[Run] = ()
) -> tuple[Results, dict[Run, Cell]]:
    """Every run of some tables, each once, and what is drawn of some runs."""
    results = {}
    to_run = []
    for one in dict.fromkeys([*(one for table in wanted for one in table.runs), *drawn]):
        kept = journal.results.get(_key_of(one))
        if kept is not None:
            results[one] = Result(**kept)
        if kept is None or one in drawn:
            to_run.append(one)
    # The longest first, so that no process waits for another at the end.
    to_run.sort(key=_work, reverse=True)
    cells = {}
    work = partial(_result, frozenset(drawn))
    found = jobs.run_all(work, to_run, jobs=processes, tasks_per_process=8)
    for one, result, cell in _told(found, len(to_run)):
        if one not in results:
            results[one] = result
            journal.add(_key_of(one), dataclasses.asdict(result))
        if cell is not None:
            cells[one] = cell
    return results, cells


def _key_of(one: Run) -> str:
    return f"{one.policy}: {name_of(one)}"


def sweep_all(groups: int, processes: int) -> dict[str, Figures]:
    """The model's sweeps, one for each workload."""
    figures = {}
    for name in WorkloadName:
        workload = Workload(name, SEED, brokers=100, spread=100, rounds=60, steps=STEPS)
        sweep = Sweep(workload, groups)
        tally = run_sweep(sweep, processes=processes, on_progress=_unwatched)
        figures[str(name)] = tally.figures(STEPS)
    return figures


def draw(plan: Mapping[str, Mapping[str, Run]], cells: Mapping[Run, Cell], folder: Path) -> None:
    """Draw the step scenarios under several policies, and one run of max-min in full."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        scenario: {policy: cells[one] for policy, one in row.items()}
        for scenario, row in plan.items()
    }
    draw_comparison(drawn, folder / "policies.svg")
    for scenario, row in drawn.items():
        policy, cell = next(iter(row.items()))
        title = f"{scenario}, 10 daemons, {policy}"
        draw_run(cell.table, folder / f"{scenario}.svg", title=title, steps=cell.steps)


def find_marks(text: str, name: str) -> tuple[int, int]:
    """Where a table begins and ends.

    Raises:
        MarkerMissing: there is no such place.
    """
    begin, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
    first, last = text.find(begin), text.find(end)
    if first < 0 or last < first:
        raise MarkerMissing(f"expected {begin.strip()!r} and, after it, {end!r}")
    return first + len(begin), last


def put(text: str, name: str, table: str) -> str:
    """The document with another table in its place."""
    first, last = find_marks(text, name)
    return f"{text[:first]}\n{table}\n\n{text[last:]}"


def _result(drawn: frozenset[Run], one: Run) -> tuple[Run, Result, Cell | None]:
    outcome = run(one.as_scenario, policy=one.policy, seed=SEED)
    verdicts = tuple(
        (verdict.figure, verdict.asked, verdict.is_met) for verdict in outcome.verdicts
    )
    result = Result(outcome.line(), len(outcome.violations), verdicts)
    return one, result, _cell(outcome) if one in drawn else None


def _cell(outcome: Outcome) -> Cell:
    recording = outcome.recording
    steps = [
        step / recording.round_ns - recording.warmup for step in outcome.cluster.demand.steps_ns
    ]
    # The last step is enough: all of them would be smaller, and say the same.
    first = math.floor(steps[-1])
    table = table_of(recording, 0).counted_from(recording.warmup + first)
    rounds_after = recording.rounds - recording.warmup - first
    table = table.between(-ROUNDS_BEFORE, rounds_after)
    rounds = outcome.figures.rounds_to_fair
    verdict = "never fair in these rounds" if rounds is None else f"rounds to fair: {rounds}"
    return Cell(table, verdict, [steps[-1] - first])


def _unwatched(_done: int) -> None:
    """Nobody looks."""


def _work(one: Run) -> float:
    scenario = one.as_scenario
    asks = scenario.asks_per_s * scenario.round_ms / 1000
    return scenario.rounds_all * scenario.daemons * (asks + scenario.daemons**2)


def _told(results: Iterable[_Item], count: int) -> Iterator[_Item]:
    """Pass results on, and say on a terminal how many there were."""
    for done, result in enumerate(results, 1):
        if sys.stderr.isatty():
            print(f"\r{done} of {count} runs", end="", file=sys.stderr, flush=True)
        yield result
    if sys.stderr.isatty():
        print(file=sys.stderr)


if __name__ == "__main__":
    exit_with(main)
