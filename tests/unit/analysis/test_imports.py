"""What is loaded where: nothing heavy before it is needed, nothing of the daemon in an executor.

Not covered: the layers in general (`make arch`).
"""

import os
import subprocess
import sys

HEAVY = ("pyspark", "pyarrow", "pandas")
DAEMON = ("rgd.adapters", "rgd.app", "rgd.cli", "rgd.config", "asyncio", "aiohttp", "pydantic")


def loaded_by(module: str) -> set[str]:
    """The modules that a fresh interpreter has after an import."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_door_loads_nothing_heavy() -> None:
    assert not loaded_by("rgd.analysis.report") & set(HEAVY)


def test_a_plane_loads_no_client_that_only_an_admin_api_needs() -> None:
    assert "aiohttp" not in loaded_by("rgd.app.planes.plane_process")


def test_workers_are_forked_with_their_modules_by_a_process_of_one_thread() -> None:
    code = "import os, sys, rgd.analysis.worker_daemon; print(len(os.listdir('/proc/self/task')), *sys.modules)"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as Spark sets it
    command = [sys.executable, "-c", code]
    threads, *loaded = subprocess.check_output(command, env=environment, text=True).split()

    assert (threads, {*DAEMON, "pyarrow", "pandas"} & {*loaded}) == ("1", set())
    assert {"pyspark.worker", "rgd.analysis.reading", "rgd.analysis.evaluation"} <= {*loaded}
