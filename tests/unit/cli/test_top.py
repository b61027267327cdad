"""`rgd top`: a snapshot once, and lines that follow the rounds, also beyond the daemon's end.

That it reaches a daemon in every way is in test_asking.py, what a snapshot says in tests/unit/views.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.running_daemon import running_daemon
from tests.unit.cli.conftest import Rgd

SNAPSHOT = PolicySnapshot(
    {"gold": Group("gold", Limit(Rates(rate_of(4))))},
    Attachments(namespaces={"acme/orders": "gold"}),
)


def wait_for_rows(rgd: Rgd, url: str) -> None:
    """Until the daemon has looked at its policies, at the end of its first round at the latest."""
    while not json.loads(rgd("top", "--once", "--json", "--url", url).out)["groups"]["rows"]:
        pass


def test_once_shows_the_verdict_brokers_and_groups(rgd: Rgd, tmp_path: Path) -> None:
    with running_daemon(tmp_path, SNAPSHOT) as running:
        running.ask(Request(messages=4, namespace="acme/orders"))
        wait_for_rows(rgd, running.url)
        text = rgd("top", "--once", "--url", running.url)
        view = json.loads(rgd("top", "--once", "--json", "--url", running.url).out)
    verdict, brokers, *_, head, row = text.out.splitlines()
    assert verdict.endswith("1 broker shares 1 group.")
    assert view["verdict"]["text"].endswith("1 broker shares 1 group.")
    assert brokers == "brokers: broker-1 (this)"
    assert head.split() == [
        *("GROUP", "KIND", "DIMENSION", "DEMAND"),
        *("WANTED", "ADMITTED", "QUOTA", "PRESSURE", "LOWEST_RATIO", "REFUSED_HERE"),
    ]
    assert row.split()[:3] == ["gold", "publish", "messages"]


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


def test_lines_follow_the_rounds_and_say_that_the_daemon_is_gone(tmp_path: Path) -> None:
    with running_daemon(tmp_path, SNAPSHOT) as running:
        command = [sys.executable, "-m", "rgd", "top", "--json", "--url", running.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as watching:
            assert watching.stdout is not None

            def line() -> Any:
                return json.loads(watching.stdout.readline())  # type: ignore[union-attr]

            first, second = line(), line()
            assert first["number"] < second["number"]
            assert running.loop is not None
            assert running.until is not None
            running.loop.call_soon_threadsafe(running.until.set)
            words = ""
            while not words.startswith("Stale since "):
                words = line()["verdict"]["text"]
            watching.terminate()
    assert words.endswith("broker-1 does not answer; trying again.")
