"""`python -m sim.model`: a big sweep, its figures as a table or as one JSON object.

The last line with `--json` is one object: the sweep's parameters, the figures
of docs/simulator.md over all groups (`lowest_ratio` leaves out the rounds in which the
demand moved), `within` (of all shares, how many within 2 % of max-min), `cpu_s`
over all processes and `peak_bytes`, the sum of their largest resident sizes.
With `--log DIR` the daemons' usage logs are written instead (`sim.model.logged`).
"""

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rgd.core.fluid.cluster import Settings
from sim.exiting import exit_with
from sim.model.logged import write_logs
from sim.model.sweep import Sweep, run
from sim.model.tally import Figures
from sim.model.workload import STEPS, Workload, WorkloadName

PROCESSES_MAX: Final = 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    steps = tuple(step for step in options.steps if step < options.rounds - 1)
    workload = Workload(
        WorkloadName(options.workload),
        seed=options.seed,
        brokers=options.daemons,
        spread=min(options.spread or options.daemons, options.daemons),
        rounds=options.rounds,
        steps=steps,
    )
    if options.log is not None:
        settings = Settings(burst_ms=options.burst_ms)
        count = write_logs(
            workload, options.groups, settings, folder=options.log, round_s=options.round_s
        )
        print(f"{count:,} entries in {options.log}")
        return 0
    sweep = Sweep(workload, options.groups, Settings(burst_ms=options.burst_ms))
    tally = run(sweep, processes=options.processes, on_progress=_progress(options.groups))
    answer = {
        "workload": str(workload.name),
        "seed": workload.seed,
        "daemons": workload.brokers,
        "groups": sweep.groups,
        "spread": workload.spread,
        "rounds": workload.rounds,
        "steps": list(steps),
        "burst_ms": options.burst_ms,
        **_rounded(tally.figures(steps)),
        **_cost(options.processes),
    }
    if options.json:
        print(json.dumps(answer))
    else:
        for name, value in answer.items():
            print(f"{name:>16}  {'never' if value is None else value}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sim.model", description="A big sweep.")
    parser.add_argument("--workload", choices=list(WorkloadName), default=WorkloadName.HEAVY_TAIL)
    parser.add_argument("--daemons", type=_positive, default=100)
    parser.add_argument("--groups", type=_positive, default=1000)
    parser.add_argument("--spread", type=_positive, help="brokers a group is on (default: all)")
    parser.add_argument("--rounds", type=_positive, default=60)
    parser.add_argument("--steps", type=_positive, nargs="*", default=list(STEPS))
    parser.add_argument("--burst-ms", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=_positive, default=_processes())
    parser.add_argument("--log", type=Path, help="write the daemons' usage logs there instead")
    parser.add_argument("--round-s", type=_positive, default=60, help="length of a logged round")
    parser.add_argument("--json", action="store_true", help="one object as the last line")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _processes() -> int:
    return min(PROCESSES_MAX, os.cpu_count() or 1)


def _progress(groups: int) -> Callable[[int], None]:
    is_shown = sys.stderr.isatty()

    def show(done: int) -> None:
        if is_shown:
            end = "\n" if done == groups else ""
            print(f"\r{done:,} of {groups:,} groups", end=end, file=sys.stderr, flush=True)

    return show


def _rounded(figures: Figures) -> dict[str, float | None]:
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in asdict(figures).items()
    }


def _cost(processes: int) -> dict[str, float]:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    # The system keeps the largest child only: all of them are taken to be as large.
    return {
        "cpu_s": round(cpu_s, 1),
        "peak_bytes": (own.ru_maxrss + processes * children.ru_maxrss) * unit,
    }


if __name__ == "__main__":
    exit_with(main)
