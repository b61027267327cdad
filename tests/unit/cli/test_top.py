"""`rgd top`: a snapshot once, and lines that follow the rounds, also beyond the daemon's end.

That it reaches a daemon in every way is in test_asking.py, what a snapshot says in tests/unit/views.
"""

import json
import sys
from pathlib import Path

import pytest

from rgd.core.policies.model import Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.running_daemon import running_daemon
from tests.unit.cli.conftest import Rgd


def wait_for_rows(rgd: Rgd, url: str) -> None:
    """Until the daemon has looked at its policies, at the end of its first round at the latest."""
    while not json.loads(rgd("top", "--once", "--json", "--url", url).out)["groups"]["rows"]:
        pass


@pytest.mark.parametrize(("width", "columns"), [(40, 4), (80, 7), (200, 10)])
def test_a_terminal_has_the_verdict_and_rows_of_one_line(
    rgd: Rgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, columns: int
) -> None:
    limit = Limit(Rates(rate_of(4)))
    groups = {name: Group(name, limit) for name in (f"g{number:03}" for number in range(60))}
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "24")
    with running_daemon(tmp_path, PolicySnapshot(groups)) as running:
        wait_for_rows(rgd, running.url)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        lines = rgd("top", "--once", "--url", running.url).out.splitlines()
    rows = [line for line in lines if line.startswith("│ ")]
    assert [line.count("│") for line in rows] == [columns + 1] * len(rows)
    assert all(line.startswith("│ g") for line in rows)
    assert max(map(len, rows)) <= width
    assert len(lines) < 24
