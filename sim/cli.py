"""The command line: `python -m sim --scenario newcomer --policy max-min --seed 1 --json`.

Contract (docs/simulator.md): with `--json` the last line of standard output is one object; progress goes to
standard error, and only on a terminal. Exit codes: 0 done, 1 a law was broken, 2 asked wrongly.

A sweep (`--seeds A:B`) stops at the first broken law, keeps that seed and prints how to repeat it. It
prints one line at the end, and with `--json` one object for every seed.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rgd.core.exchange.limits import SHARDS_MAX
from sim.jobs import Journal
from sim.output import draw_rounds, write_rounds, write_summary
from sim.policies import POLICIES
from sim.run import Outcome, run
from sim.scenario import CallerKind, Scenario
from sim.scenarios import SCENARIOS
from sim.sweep import FAILING_SEEDS, NUMBERS, keep_failing_seeds, run_seeds
from sim.text import listing, report
from sim.usage_log import write_usage_logs

EXIT_DONE, EXIT_FAILED, EXIT_ASKED_WRONGLY = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.list:
        print(listing(SCENARIOS.values()))
        return EXIT_DONE
    if options.scenario is None:
        parser.error("say which --scenario, or --list")
    try:
        scenario = with_options(SCENARIOS[options.scenario], options)
        scenario.workload(scenario.ground(0))
    except ValueError as wrong:
        parser.error(str(wrong))
    if options.seeds is not None:
        return sweep(scenario, options)
    outcome = run(
        scenario, policy=options.policy, seed=options.seed, on_round=_Progress(scenario.rounds_all)
    )
    try:
        _write(outcome, options)
    except OSError as exc:
        print(f"sim: {exc}", file=sys.stderr)
        return EXIT_FAILED
    if not options.json or sys.stdout.isatty():
        print(report(outcome))
    else:
        for violation in outcome.violations:
            print(violation, file=sys.stderr)
    if options.json:
        print(json.dumps(outcome.line()))
    return EXIT_FAILED if outcome.violations else EXIT_DONE


def sweep(scenario: Scenario, options: argparse.Namespace) -> int:
    """Run many seeds, up to the first that breaks a law."""
    seeds = range(*options.seeds)
    tell = _Progress(len(seeds), "seeds")
    outcomes = run_seeds(
        scenario, options.policy, seeds, jobs=options.jobs, journal=Journal(options.journal)
    )
    for done, (line, failing) in enumerate(outcomes, 1):
        tell(done)
        if options.json:
            print(json.dumps(line), flush=True)
        if failing is not None:
            keep_failing_seeds([failing], options.keep)
            print(f"seed {failing.seed} broke a law: {failing.story}", file=sys.stderr)
            print(f"again: {failing.command}", file=sys.stderr)
            return EXIT_FAILED
    if not options.json:
        print(f"{scenario.name}: {len(seeds)} seeds, no law broken")
    return EXIT_DONE


def with_options(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """The scenario with what the command line replaces.

    Raises:
        ValueError: a number is out of range.
    """
    given = {name: value for name in NUMBERS if (value := getattr(options, name)) is not None}
    for name, value in given.items():
        least = 0 if name in ("burst_ms", "delay_ms", "loss") else 1
        most = {"loss": 1, "shards": SHARDS_MAX}.get(name, value)
        if not least <= value <= most:
            raise ValueError(f"--{name.replace('_', '-')}: {value} is out of range")
    if options.retries is not None:
        if options.retries < 0:
            raise ValueError(f"--retries: {options.retries} is out of range")
        given |= {"retries": options.retries, "callers": CallerKind.RETRY}
    if options.unsaid:
        given["says_attempt"] = False
    return replace(scenario, **given)


def make_parser() -> argparse.ArgumentParser:
    """Every option."""
    parser = argparse.ArgumentParser(
        prog="python -m sim", description="Run rgd's own core in a simulated cluster."
    )
    add = parser.add_argument
    add("--list", action="store_true", help="print the scenarios with their defaults")
    add("--scenario", choices=sorted(SCENARIOS), metavar="NAME")
    add("--policy", choices=POLICIES, default=POLICIES[0], help=", ".join(POLICIES))
    add("--seed", type=int, default=0)
    add("--seeds", type=_range, metavar="A:B", help="run the seeds from A up to but not at B")
    add("--daemons", type=int)
    add("--groups", type=int)
    add("--shards", type=int, help="topics over which rows are spread by group")
    add("--rounds", type=int, help="rounds that are measured")
    add("--burst-ms", type=int)
    add("--retries", type=int, metavar="K", help="refused work comes back up to K times")
    add("--unsaid", action="store_true", help="callers do not say that it is a retry")
    add("--delay-ms", type=float, help="the greatest delay of a message")
    add("--loss", type=float, help="part of the messages that is lost, 0 to 1")
    add("--out", type=Path, metavar="DIR", help="write rounds, figures and plots")
    add("--log", type=Path, metavar="DIR", help="write usage logs as the daemons would")
    add("--json", action="store_true", help="the last line is the figures as one object")
    add("--keep", type=Path, default=FAILING_SEEDS, help="where a sweep keeps failing seeds")
    add("--jobs", type=int, default=1, metavar="N", help="processes of a sweep")
    add(
        "--journal",
        type=Path,
        metavar="FILE",
        help="seeds in it are not run again by the same code",
    )
    return parser


def _write(outcome: Outcome, options: argparse.Namespace) -> None:
    if options.out is not None:
        write_rounds(outcome.recording, options.out)
        write_summary(outcome, options.out)
        try:
            draw_rounds(outcome, options.out)
        except ImportError as exc:
            print(f"sim: no plots without {exc.name}: pip install '.[test]'", file=sys.stderr)
    if options.log is not None and not write_usage_logs(outcome.cluster, options.log):
        print(f"sim: {outcome.policy} writes no usage log", file=sys.stderr)


def _range(text: str) -> tuple[int, int]:
    first, _, end = text.partition(":")
    if not (first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise argparse.ArgumentTypeError(f"expected A:B with A < B, got {text!r}")
    return int(first), int(end)


class _Progress:
    """Writes to a terminal how far the run is."""

    def __init__(self, total: int, unit: str = "rounds") -> None:
        self._total = total
        self._unit = unit

    def __call__(self, done: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == self._total else ""
            print(f"\r{done} of {self._total} {self._unit}", end=end, file=sys.stderr, flush=True)
