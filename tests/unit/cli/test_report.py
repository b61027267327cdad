"""`rgd report`: what its options hand to the analysis, and what it prints.

The Spark job is replaced here by what it returns; tests/integration runs the real one.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rgd.analysis import report as analysis
from rgd.analysis.asked import EVERYTHING
from rgd.cli.report import write_report
from tests.unit.cli.conftest import Rgd


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def run_report(paths: list[str], out: Path | str, **options: Any) -> object:
        options.pop("progress")("reading")
        calls.append((paths, out, options))
        return SimpleNamespace(
            tables=[
                (("group", "wanted /s"), [("[gold]", "12.5")]),
                (("scenario", "admitted /s"), [("policy=steal", "13.5")]),
            ],
            sentences=["Nobody was starved, \x1b[31mred\x1b[0m neither."],
            page=f"{out}/report.html",
            fetched="2 MB fetched of logs of 1 MB",
        )

    monkeypatch.setattr(analysis, "run_report", run_report)
    return calls


def test_options_reach_the_job_and_findings_the_terminal(
    rgd: Rgd, ran: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    outcome = rgd(
        "report", "log/east", "log/west", "--out", tmp_path, "--master", "local[1]", "--window-s", 5
    )
    assert (outcome.code, outcome.err) == (0, "")
    options = {"master": "local[1]", "window_s": 5.0, "asked": EVERYTHING}
    assert ran == [(["log/east", "log/west"], str(tmp_path), options)]
    for text in (
        "[gold]",
        "12.5",
        "policy=steal",
        "Nobody was starved, \\x1b[31mred\\x1b[0m neither.",
        f"report: {tmp_path / 'report.html'} (2 MB fetched of logs of 1 MB)",
    ):
        assert text in outcome.out


def test_a_time_range_that_is_none_is_refused(rgd: Rgd, tmp_path: Path) -> None:
    for options, error in (
        (("--from", "noon"), "--from: expected ISO"),
        (("--from", "20", "--to", "20"), "--to: expected a time after 20"),
        (("--compare", "20..10"), "--compare: expected a time after 20"),
        (("--compare", "20.."), "--compare: expected FROM..TO"),
    ):
        outcome = rgd("report", "log", "--out", tmp_path, *options)
        assert outcome.code != 0
        assert error in outcome.err


def test_the_demo_writes_its_report_the_same_way(
    ran: list[tuple[Any, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_report([tmp_path / "log"], tmp_path / "report")
    options = {"master": None, "window_s": None, "asked": EVERYTHING}
    assert ran == [([str(tmp_path / "log")], tmp_path / "report", options)]
    assert "report.html" in capsys.readouterr().out


def test_a_log_that_is_not_there_is_refused_by_the_real_analysis(rgd: Rgd, tmp_path: Path) -> None:
    outcome = rgd("report", tmp_path / "nothing", "--out", tmp_path / "out")
    assert outcome.code == 1
    assert str(tmp_path / "nothing") in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_the_documentation_has_a_table_of_all_options(rgd: Rgd) -> None:
    shown = re.findall(r"^ +(--\S+ \S+) ", rgd("report", "--help").out, re.MULTILINE)
    page = Path("docs/report.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(--[^`]+)` \| .+ \| .+ \|$", page, re.MULTILINE) == shown
