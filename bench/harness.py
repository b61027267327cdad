"""What the benchmarks have in common: their command line, their output, the best of several passes.

    python bench/harness.py [--json]

A benchmark hands `run` a function that measures. By itself this measures the machine: figures of two
machines compare only as ratios, or after a look at these.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import psutil

#: Name of a figure to its value; units are in the names.
Figures = Mapping[str, float]

REPEATS: Final = 15

#: Seconds from one look at processes to the next.
LOOK_S: Final = 0.3

#: What numpy is kept from using, one after another, to find its fastest sort: nothing, or AVX-512, with
#: which it sorts five times as slowly as with AVX2 on processors that store compressed vectors slowly.
SORT_WITHOUT: Final = ("", "X86_V4 AVX512_ICL AVX512_SPR AVX512_SKX AVX512_CLX AVX512_CNL")
_SORT: Final = """
import sys
import numpy as np
from bench.harness import best_s
numbers = np.random.default_rng(1).integers(0, 1 << 40, int(sys.argv[1]))
print(best_s(lambda: np.sort(numbers)))
"""
LOOP_COUNT: Final = 1_000_000


def go_first() -> None:
    """Have this thread get a core before all others where the system lets it (root).

    Otherwise a caller that has its answer and waits for a core measures that.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def groups_file(folder: Path, groups: Iterable[str]) -> Path:
    """A groups file in a folder, which is made where it is not there, with a limit for each group."""
    folder.mkdir(exist_ok=True)
    file = folder / "groups.yaml"
    lines = (f"  {name}: {{publish: {{messages: 1000}}}}\n" for name in groups)
    file.write_text("groups:\n" + "".join(lines))
    return file


def run(
    about: str | None,
    measure: Callable[[argparse.Namespace], Figures],
    *,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> None:
    """Measure; print a table, or with `--json` one object on the last line.

    Args:
        about: the script's docstring, of which `--help` shows the first line.
        measure: answers with the figures, given the options.
        add_options: declares the options that only this script has.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="the last line is one object")
    add_options(parser)
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}} {value:>14,}")


def best_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds that `work` takes at best: what disturbs a pass only ever adds."""
    took = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)


def numpy_sort_s(count: int) -> float:
    """Seconds that numpy takes to sort so many random 64-bit integers, the fastest way it has here."""
    took = []
    for without in SORT_WITHOUT:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        if without:
            environment["NPY_DISABLE_CPU_FEATURES"] = without
        command = [sys.executable, "-W", "ignore", "-c", _SORT, str(count)]
        printed = subprocess.check_output(command, env=environment, text=True)
        took.append(float(printed))
    return min(took)


def measure_machine(_: argparse.Namespace) -> Figures:
    """What this machine is, as far as the benchmarks care."""
    loop_s = best_s(lambda: sum(range(LOOP_COUNT)))
    return {"cores": os.cpu_count() or 0, "python_loop_ms": round(loop_s * 1000, 2)}


class Processes:
    """What this process and those that it starts take, looked at now and then.

    Processes that end are known as they were a moment before. Memory is the peak of each by itself: what
    `getrusage` says of a new one has that of the process that started it in it.
    """

    def __init__(self) -> None:
        self._seconds: dict[psutil.Process, float] = {}
        self._peaks_mb: dict[psutil.Process, int] = {}
        self._java: set[psutil.Process] = set()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        """Processor time of all so far."""
        self._look()
        return sum(list(self._seconds.values()))

    def peaks_mb(self) -> tuple[int, int, int]:
        """The most memory of this process, of another of Python, and of Java, MiB."""
        own = self._peaks_mb.pop(psutil.Process())
        java = max((self._peaks_mb.pop(one, 0) for one in self._java), default=0)
        return own, max(self._peaks_mb.values(), default=0), java

    def _watch(self) -> None:
        while not threading.Event().wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        this = psutil.Process()
        for one in (this, *this.children(recursive=True)):
            with contextlib.suppress(psutil.Error, OSError, StopIteration), one.oneshot():
                times = one.cpu_times()
                self._seconds[one] = times.user + times.system
                with Path(f"/proc/{one.pid}/status").open() as status:
                    peak = next(line for line in status if line.startswith("VmHWM"))
                self._peaks_mb[one] = int(peak.split()[1]) // 1024
                if one.name() == "java":
                    self._java.add(one)


if __name__ == "__main__":
    run(__doc__, measure_machine)
