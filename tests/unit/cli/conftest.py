"""Running the `rgd` command inside the test process, as the entry point does.

What needs a process of its own (closed pipes, what is imported) starts one in its test.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rgd.cli.main import run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of the command left."""

    code: object
    out: str
    err: str


Rgd = Callable[..., Outcome]


@pytest.fixture
def rgd(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rgd:
    """Run `rgd ARGUMENT...`; the doctor waits for checks and daemons as a busy machine needs it."""
    monkeypatch.setattr("rgd.app.doctor.findings.CHECK_S", 60.0)
    monkeypatch.setattr("rgd.app.doctor.running.DAEMON_S", 60.0)

    def command(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rgd", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run()
        captured = capsys.readouterr()
        return Outcome(ended.value.code, captured.out, captured.err)

    return command
