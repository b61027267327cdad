"""No program that a test starts outlives it, killed or not.

Not covered: Apache Pulsar, ports and its shell, which every test with the marker `pulsar` uses.
"""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support import child_processes

ENDED_TIMEOUT_S = 60

#: A process whose end is to be seen. By the time it runs, the kernel knows on whose end to kill it.
PARENT = """
import os, sys
from pathlib import Path
from tests.support import child_processes
folder = Path(sys.argv[1])
program = child_processes.start_dying_with_parent(
    ["/bin/sh", "-c", f"echo up > {folder / 'is_up'}; exec sleep 60"],
    environment=dict(os.environ),
    log=folder / "log",
)
(folder / "is_up").read_text()
print(program.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_started_program_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "is_up")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        cwd=Path(child_processes.__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        program = psutil.Process(int(parent.stdout.readline()))
        assert program.is_running()
        parent.kill()
    try:
        program.wait(ENDED_TIMEOUT_S)
    finally:
        if program.is_running():
            program.kill()
