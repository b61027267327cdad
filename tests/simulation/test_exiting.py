"""`python -m sim ... | head` ends quietly, as a Unix tool does, with a real pipe."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["sim", "--list"], ["sim.model", "--help"]])
@pytest.mark.slow
def test_a_reader_that_has_left_gets_no_traceback(
    command: list[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
    # argparse swallows it where its help is not buffered.
    assert done.returncode == 141 or (unbuffered and "--help" in command)
