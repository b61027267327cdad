"""A child ends with its parent. Not covered: other systems than Linux, where nothing ends it."""

import subprocess
import sys

import psutil
import pytest

from rgd.children import dying_with_parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's parent-death signal")
#: A parent that tells its child's number and waits.
PARENT = """
import signal, subprocess, sys
from rgd.children import dying_with_parent
print(subprocess.Popen(dying_with_parent(sys.argv[1:])).pid, flush=True)
signal.pause()
"""
GONE_S = 60


def test_it_ends_when_its_parent_is_killed() -> None:
    command = [sys.executable, "-c", PARENT, "sleep", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(GONE_S)


def test_it_never_begins_if_its_parent_is_gone_already() -> None:
    *launcher, _parent, by, program = dying_with_parent(["false"])
    assert subprocess.run([*launcher, "-1", by, program], check=False).returncode == 0
