"""`python -m sim.convergence --out docs`: makes the tables and pictures of docs/convergence.md anew.

Law: every figure in the document between markers was made by one run of this command; the prose around
them is written by hand and stays as it is.

Tables go between `<!-- table NAME -->` and `<!-- end NAME -->` in `convergence.md`, pictures into the
folder `convergence` beside it. What is compared is in `sim.comparison`. All of it takes an hour of two
cores: `--only` makes some tables, and with `--keep` each run's figures stay in a file and are not run again
(they are of the code that ran: let another commit begin with another file). Exit codes: 0 done, 1 a marker
is missing, 2 asked wrongly.
"""

import argparse
import json
import math
import multiprocessing
import multiprocessing.pool
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, TypeVar

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
    step_runs,
    tables,
)
from sim.exiting import exit_with
from sim.model.sweep import Sweep
from sim.model.sweep import run as run_sweep
from sim.model.tally import Figures
from sim.model.workload import STEPS, Workload, WorkloadName
from sim.output import table_of
from sim.plots import Cell, draw_comparison, draw_run
from sim.run import run

DOCUMENT: Final = "convergence.md"
PICTURES: Final = "convergence"

#: The table that the vectorised model fills.
MODEL: Final = "model"

PROCESSES: Final = 2

#: Rounds before the last step that are drawn.
ROUNDS_BEFORE: Final = 3

_Item = TypeVar("_Item")


class MarkerMissing(Exception):
    """The document has no place for a table."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m sim.convergence", description="Make the tables of docs/convergence.md anew."
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help=f"where {DOCUMENT} is")
    add("--quick", action="store_true", help="fewer rounds, at most 10 daemons")
    add("--only", nargs="+", metavar="TABLE", help=f"these tables only, or {PICTURES}")
    add("--keep", type=Path, metavar="FILE", help="keep each run's figures there, and use them")
    add("--processes", type=int, default=PROCESSES)
    options = parser.parse_args(arguments)
    document = options.out / DOCUMENT
    if not document.is_file():
        parser.error(f"{document} is not there: it holds the prose around the tables")
    size = QUICK if options.quick else FULL
    known = tables(size)
    names = [*(table.name for table in known), MODEL, PICTURES]
    if unknown := set(options.only or ()) - set(names):
        parser.error(f"--only: no {', '.join(sorted(unknown))}; the tables are {', '.join(names)}")
    chosen = options.only or names
    wanted = [table for table in known if table.name in chosen]
    try:
        text = document.read_text()
        for name in chosen:
            if name != PICTURES:
                find_marks(text, name)
        results = run_all(wanted, options.processes, Kept(options.keep))
        for table in wanted:
            text = put(text, table.name, table.write(results))
        if MODEL in chosen:
            figures = sweep_all(size.model_groups, options.processes)
            text = put(text, MODEL, model_table(figures, size.model_groups))
    except MarkerMissing as missing:
        print(f"sim.convergence: {document}: {missing}", file=sys.stderr)
        return 1
    document.write_text(text)
    if PICTURES in chosen:
        draw(size, options.out / PICTURES, options.processes)
    return 0


class Kept:
    """Results of runs in a file, one a line."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.results: dict[Run, Result] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                one, result = json.loads(line)
                options = tuple((name, value) for name, value in one["options"])
                verdicts = tuple(tuple(verdict) for verdict in result["verdicts"])
                self.results[Run(one["scenario"], one["policy"], options)] = Result(
                    result["line"], result["violations"], verdicts
                )

    def add(self, one: Run, result: Result) -> None:
        """Keep one more."""
        self.results[one] = result
        if self._path is not None:
            with self._path.open("a") as file:
                print(json.dumps((asdict(one), asdict(result))), file=file)


def run_all(wanted: Sequence[Table], processes: int, kept: Kept) -> Results:
    """Every run of some tables, each once."""
    runs = [one for table in wanted for one in table.runs]
    runs = [one for one in dict.fromkeys(runs) if one not in kept.results]
    # The longest first, so that no process waits for another at the end.
    runs.sort(key=_work, reverse=True)
    if runs:
        with _pool(processes, len(runs)) as pool:
            for one, result in _told(pool.imap_unordered(_result, runs), len(runs)):
                kept.add(one, result)
    return kept.results


def sweep_all(groups: int, processes: int) -> dict[str, Figures]:
    """The model's sweeps, one for each workload."""
    figures = {}
    for name in WorkloadName:
        workload = Workload(name, SEED, brokers=100, spread=100, rounds=60, steps=STEPS)
        sweep = Sweep(workload, groups)
        tally = run_sweep(sweep, processes=processes, on_progress=_unwatched)
        figures[str(name)] = tally.figures(STEPS)
    return figures


def draw(size: Size, folder: Path, processes: int) -> None:
    """The step scenarios under several policies, and one run of max-min in full."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = step_runs(size)
    runs = [one for row in plan.values() for one in row.values()]
    with _pool(processes, len(runs)) as pool:
        cells = dict(_told(pool.imap_unordered(_cell, runs), len(runs)))
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


def _pool(processes: int, runs: int) -> "multiprocessing.pool.Pool":
    # One run a task and few tasks a process: what a run leaves in memory goes with it.
    context = multiprocessing.get_context("spawn")
    return context.Pool(max(1, min(processes, runs)), maxtasksperchild=8)


def _result(one: Run) -> tuple[Run, Result]:
    outcome = run(one.as_scenario, policy=one.policy, seed=SEED)
    verdicts = tuple(
        (verdict.figure, verdict.asked, verdict.is_met) for verdict in outcome.verdicts
    )
    return one, Result(outcome.line(), len(outcome.violations), verdicts)


def _cell(one: Run) -> tuple[Run, Cell]:
    outcome = run(one.as_scenario, policy=one.policy, seed=SEED)
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
    return one, Cell(table, verdict, [steps[-1] - first])


def _unwatched(_done: int) -> None:
    """Nobody looks."""


def _work(one: Run) -> float:
    scenario = one.as_scenario
    asks = scenario.asks_per_s * scenario.round_ms / 1000
    return scenario.rounds_all * scenario.daemons * (asks + scenario.daemons**2)


def _told(results: Iterable[_Item], count: int) -> Iterable[_Item]:
    """Pass results on, and say on a terminal how many there were."""
    for done, result in enumerate(results, 1):
        if sys.stderr.isatty():
            print(f"\r{done} of {count} runs", end="", file=sys.stderr, flush=True)
        yield result
    if sys.stderr.isatty():
        print(file=sys.stderr)


if __name__ == "__main__":
    exit_with(main)
