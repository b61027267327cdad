"""What is loaded where: nothing heavy before it is needed, nothing of the daemon in an executor.

Not covered: the layers in general (`make arch`).
"""

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pyarrow", "pandas")
DAEMON = ("rgd.adapters", "rgd.app", "rgd.cli", "rgd.config", "asyncio", "aiohttp", "pydantic")


def loaded_by(module: str) -> set[str]:
    """The modules that a fresh interpreter has after an import."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_door_loads_nothing_heavy() -> None:
    assert not loaded_by("rgd.analysis.report") & set(HEAVY)


@pytest.mark.parametrize("module", ["rgd.analysis.reading", "rgd.analysis.evaluation"])
def test_an_executor_loads_neither_the_daemon_nor_the_plots(module: str) -> None:
    loaded = loaded_by(module)

    assert not loaded & {*DAEMON, "pandas"}
