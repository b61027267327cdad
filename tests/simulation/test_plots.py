"""Tables of rounds, the pictures that are drawn of them, and the document that both go into.

Not covered: how a picture looks, which somebody has to look at, and the figures of long runs, which
docs/convergence.md keeps.
"""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sim.comparison import QUICK, Result, Table, run_of, tables
from sim.convergence import MarkerMissing, find_marks, put, run_all
from sim.jobs import Journal
from sim.plots import draw_run
from sim.policies import POLICIES
from sim.scenario import CallerKind
from sim.scenarios import SCENARIOS
from sim.table import RoundRow, RoundTable

pytestmark = pytest.mark.slow


def rows(brokers: int, rounds: int, *, group: str = "gold") -> list[RoundRow]:
    """The first broker moves up in the middle, the second down, the others stay."""
    made = []
    for number in range(rounds):
        is_late = number >= rounds // 2
        for place in range(brokers):
            part = {0: 50.0 if is_late else 10.0, 1: 10.0 if is_late else 50.0}.get(place, 20.0)
            made.append(RoundRow(number, group, f"broker-{place}", 2 * part, part, part, part))
    return made


def table(brokers: int = 12, rounds: int = 8) -> RoundTable:
    return RoundTable.of(rows(brokers, rounds))


def test_a_table_is_what_was_written(tmp_path: Path) -> None:
    before = RoundTable.of([*rows(3, 4), RoundRow(4, "si,lver", "broker-1", 0.1, 1 / 3, 2.0, 0.0)])
    before.write(tmp_path / "rounds.csv")
    after = RoundTable.read(tmp_path / "rounds.csv")
    for name in RoundRow._fields:
        assert getattr(after, name).tolist() == getattr(before, name).tolist()
    assert after.groups == ["gold", "si,lver"]


def texts(path: Path) -> list[str]:
    """All text in an SVG."""
    return [node.text or "" for node in ET.parse(path).iter() if node.tag.endswith("text")]


def test_a_picture_names_the_brokers_at_their_lines_and_stays_the_same(tmp_path: Path) -> None:
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        draw_run(table(), path, title="a title")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    said = texts(paths[0])
    assert {"a title", "broker-0", "broker-1", "9 others", "round"} <= set(said)


def result(name: str, rounds: int | None = 1) -> Result:
    line = {
        "scenario": name,
        "rounds_to_fair": rounds,
        "utilisation": 0.97654,
        "movement": 0.0123456,
        "overshoot_round": 1.0,
        "overshoot_10": 1.0,
        "lowest_ratio": None if rounds is None else 0.987,
    }
    return Result(line, 2, (("rounds_to_fair", "<= 1", rounds is not None),))


@pytest.mark.parametrize("one", tables(QUICK), ids=lambda one: one.name)
def test_every_table_is_written_from_its_runs(one: Table) -> None:
    assert one.runs
    for run in one.runs:
        assert run.policy in POLICIES
        assert run.as_scenario.rounds >= 1
    text = one.write({run: result(run.scenario, None) for run in one.runs})
    lines = text.splitlines()
    assert len(lines) > 2
    assert len({line.count("|") for line in lines}) == 1


def test_what_is_asked_is_what_the_scenarios_ask_of_max_min() -> None:
    [asked] = [one for one in tables(QUICK) if one.name == "asked"]
    assert {run.policy for run in asked.runs} == {"max-min"}
    assert {run.scenario for run in asked.runs} >= {"newcomer", "noise", "doorman"}
    bursts = {
        run.as_scenario.burst_ms: run.as_scenario.targets
        for run in asked.runs
        if run.scenario == "noise"
    }
    assert bursts[250] == {"utilisation": ">= 0.94"}
    assert bursts[0] == SCENARIOS["noise"].targets
    text = asked.write({run: result(run.scenario, None) for run in asked.runs})
    assert "**no**" in text


def test_a_table_goes_between_its_marks_and_the_prose_stays() -> None:
    text = "before\n<!-- table steps -->\nold\n<!-- end steps -->\nafter\n"
    new = put(text, "steps", "| a |")
    assert new == "before\n<!-- table steps -->\n\n| a |\n\n<!-- end steps -->\nafter\n"
    assert put(new, "steps", "| a |") == new
    with pytest.raises(MarkerMissing):
        find_marks(text, "noise")


def test_runs_that_two_tables_need_are_run_once_and_drawn_from_the_same_run() -> None:
    run = run_of("newcomer", "max-min", daemons=2, rounds=3)
    one = Table("one", [run], lambda results: "")
    other = Table("other", [run], lambda results: "")
    results, cells = run_all([one, other], 1, Journal(None), [run])
    assert list(results) == list(cells) == [run]
    assert results[run].line["daemons"] == 2


def test_a_run_of_the_same_code_that_was_kept_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.json"
    run = run_of("retries", "max-min", callers=CallerKind.RETRY, rounds=3)
    table = Table("one", [run], lambda results: "")
    made, _ = run_all([table], 1, Journal(path))
    monkeypatch.setattr("sim.convergence.run", None)
    assert run_all([table], 1, Journal(path))[0][run].line == made[run].line
    monkeypatch.setattr("sim.jobs.code_hash", lambda: "other code")
    assert not Journal(path).results
