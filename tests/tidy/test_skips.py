"""A missing component: a loud skip on a laptop, a failure where CI is set.

Runs pytest on a small suite of its own, with this tree's conftest. Not covered: finding each
component (that is what every test that needs one does).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import tree

SUITE = """
import pytest
from tests.support import components

def test_plain():
    pass

@pytest.mark.pulsar
def test_needs():
    components.need("flux capacitor", None, remedy="ask the doctor")

@pytest.mark.spark
def test_skips_by_itself():
    pytest.skip("not today")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


def run_suite(folder: Path, suite: str, *options: str, ci: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a suite, with this tree's conftest."""
    (folder / "test_suite.py").write_text(suite)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "tests.conftest", f"--config-file={tree.ROOT / 'pyproject.toml'}"),
        f"--rootdir={folder}",
        *(str(folder), *options),
    ]
    environment = {**os.environ, "CI": ci}
    return subprocess.run(
        command, cwd=tree.ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_skip_is_told_with_reason_and_remedy_on_the_last_line(tmp_path: Path) -> None:
    run = run_suite(tmp_path, SUITE, ci="")
    assert run.returncode == 0, run.stdout
    assert run.stdout.splitlines()[-1] == (
        "skipped: 2 (1 x flux capacitor: not found; ask the doctor; 1 x not today)"
    )


@pytest.mark.slow
def test_nothing_that_is_required_skips_where_ci_is_set(tmp_path: Path) -> None:
    run = run_suite(tmp_path, SUITE, ci="true")
    assert run.returncode == 1
    assert "flux capacitor: not found" in run.stdout
    assert "skipped where CI is set: not today" in run.stdout
    assert "2 failed, 1 passed, 1 xfailed" in run.stdout
    assert run.stdout.splitlines()[-1] == "skipped: 0"
