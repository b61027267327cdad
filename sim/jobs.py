"""Many runs in several processes, and a journal of their results, so that a stopped command goes on.

Law: a journal gives a result back only to the code that made it, so the results of one command are
those of one version of rgd and of the simulator.
"""

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

#: The packages whose code makes a result.
_PACKAGES: Final = ("rgd", "sim")

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class Journal:
    """Results by key in a file, one a line; without a path, in memory only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.results: dict[str, Any] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                code, key, result = json.loads(line)
                if code == code_hash():
                    self.results[key] = result

    def add(self, key: str, result: object) -> None:
        """Keep one more."""
        self.results[key] = result
        if self._path is not None:
            with self._path.open("a") as file:
                print(json.dumps((code_hash(), key, result)), file=file)


@cache
def code_hash() -> str:
    """A hash of the code of the core and the simulator."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run_all(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], *, jobs: int, tasks_per_process: int
) -> Iterator[_Result]:
    """Run tasks and give their results as they come; what is left is stopped when nobody reads on.

    Args:
        work: a function of a module, so that another process can call it.
        tasks: what to call it with.
        jobs: how many processes; with 1 it is this one.
        tasks_per_process: what tasks leave in memory goes after so many.
    """
    if min(jobs, len(tasks)) <= 1:
        yield from map(work, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(jobs, len(tasks)), maxtasksperchild=tasks_per_process) as pool:
        yield from pool.imap_unordered(work, tasks)
