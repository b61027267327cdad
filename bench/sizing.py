"""What a daemon takes: memory and cores by groups, questions and other brokers.

    python bench/sizing.py [--json] [--seconds 10]

The whole daemon (`rgd serve`, both of its processes, on the embedded broker) on a core of its own, in one case after the
other: so many groups, each asked for once a second in arrays; so many single questions a second; and 5,000 groups beside
the 99 other brokers of `rounds_http.py`, which change every row in every round.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import psutil

from bench import rounds_http
from bench.harness import Figures, groups_file, run
from bench.rounds import Bench
from rgd.adapters.exchange.embedded import EmbeddedBroker

GROUPS: Final = (1, 1_000, 5_000, 20_000)
QUESTIONS_PER_S: Final = (100, 1_000, 4_000)


async def case(
    folder: Path, groups: Sequence[str], seconds: float, per_s: int = 1, *, beside: bool = False
) -> dict[str, float]:
    """Memory after the start and in use, and cores, of a daemon of its own."""
    file = groups_file(folder, groups)
    broker = EmbeddedBroker(folder / "broker")
    url = await broker.ensure()
    try:
        with rounds_http.daemon(folder, url, file) as (port, process):
            await asyncio.sleep(rounds_http.SETTLE_S)
            both = [process, *process.children()]
            figures = {"start_mb": megabytes(both)}
            questions = [b'{"group":"%s"}' % name.encode() for name in groups]
            callers = rounds_http.Callers(port, questions, per_s)
            async with AsyncExitStack() as stack:
                if beside:
                    await stack.enter_async_context(rounds_http.others(url, 1.0))
                    await rounds_http.all_heard(port)
                await asyncio.sleep(rounds_http.SETTLE_S)
                before = sum(callers.answered)
                figures["cores"] = await rounds_http.cores_of(both, seconds)
                figures["asked_per_s"] = round((sum(callers.answered) - before) / seconds)
                figures["mb"] = megabytes(both)
                callers.end()
    finally:
        await broker.stop()
    return figures


def megabytes(both: Sequence[psutil.Process]) -> float:
    """Memory of a daemon's processes; what they share counts once, as for a container (Linux)."""
    return round(sum(float(one.memory_full_info().pss) for one in both) / 1e6, 1)


async def compare(options: argparse.Namespace) -> dict[str, float]:
    """Every case in turn."""
    os.sched_setaffinity(0, rounds_http.OTHER_CORES)  # what is started from here inherits it
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def add(what: str, groups: Sequence[str], per_s: int = 1, **how: bool) -> None:
            found = await case(folder / what, groups, options.seconds, per_s, **how)
            figures.update({f"{what}_{figure}": value for figure, value in found.items()})

        for count in GROUPS:
            await add(f"groups_{count}", [f"group-{number:06d}" for number in range(count)])
        for per_s in QUESTIONS_PER_S:
            await add(f"questions_{per_s}", ["group"], per_s)
        await add("beside_99", Bench(1, 0.0).asked, beside=True)
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
