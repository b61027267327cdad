"""Scenarios over logs whose truth is known by hand.

Not covered: the rules themselves (tests/property/test_shares.py, tests/simulation/test_model.py), how scenarios are shown (test_page).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rgd.analysis.evaluation import evaluate
from rgd.analysis.packets import whole_groups
from rgd.analysis.replay import replay
from rgd.analysis.scenarios import AS_LOGGED, SCENARIOS_MAX, parse
from rgd.analysis.windows import GroupWindows
from rgd.errors import ConfigError
from tests.support.log_maker import LogMaker, Usage

ReadLogs = Callable[..., Any]

JOINS = 20


@pytest.fixture
def logs(tmp_path: Path, read_logs: ReadLogs) -> Any:
    """Of a quota of 100 two brokers have 50 each, until a third one joins and each has a third."""
    for broker in range(3):
        maker = LogMaker(tmp_path / str(broker), f"broker-{broker}")
        for number in range(60):
            if broker == 2 and number < JOINS:
                maker.round()
            else:
                maker.round(Usage("gold", 50 if number < JOINS else 33, 100, quota=100))
        maker.close()
    return read_logs(tmp_path)


def found(logs: Any, *scenarios: str) -> dict[str, dict[str, Any]]:
    """What is found of the only group, as logged and by each scenario."""
    batches = evaluate(whole_groups(logs.pieces, 1), 1000, 1000.0, scenarios=parse([*scenarios]))
    (text,) = [text for one in batches for text in one["findings"].to_pylist() if text]
    return {one["scenario"]: one for one in json.loads(text)["what_if"]}


def test_a_late_joiner_starves_under_pulsars_formula_and_not_under_max_min(logs: Any) -> None:
    by = found(logs, "policy=pulsar-shipped", "policy=proportional", "policy=steal")
    assert [one["starved_s"] for one in by.values()] == [0.0, 60.0 - JOINS, 60.0 - JOINS, 0.0]
    # The third broker has its floor for a part of one round: daemons report a step at once.
    assert abs(by["as logged"]["change"]) < 0.01
    third = by["as logged"]["brokers"][2]["admitted"]
    assert third == pytest.approx(33 * (60 - JOINS) / 60, rel=0.01)


def test_quotas_brokers_and_rounds_change_what_is_admitted(logs: Any) -> None:
    by = found(
        logs, "quota=gold:200", "quota=*:x0.5", "quota=gold/bytes:1", "brokers=6", "round=5s"
    )
    admitted = {name: one["admitted"] for name, one in by.items()}
    assert admitted["quota=gold:200"] == pytest.approx(200, rel=0.01)
    assert admitted["quota=*:x0.5"] == pytest.approx(50, rel=0.01)
    assert admitted["quota=gold/bytes:1"] == admitted["as logged"]
    assert len(by["brokers=6"]["brokers"]) == 6
    assert admitted["brokers=6"] == pytest.approx(admitted["as logged"], rel=0.01)
    # The third one waits five rounds in place of one for its part.
    slow, logged = (
        {one["broker"]: one["admitted"] for one in by[name]["brokers"]}
        for name in ("round=5s", "as logged")
    )
    assert slow["broker-2"] < logged["broker-2"] - 1


def test_windows_of_several_rounds_admit_what_their_rounds_do(
    tmp_path: Path, logs: Any, read_logs: ReadLogs
) -> None:
    def admitted(windows: GroupWindows, window_ms: int) -> Any:
        (replayed,) = replay([windows], AS_LOGGED, window_ms=window_ms, round_ms=1000.0)
        return replayed.rates["messages"].admitted

    long = admitted(read_logs(tmp_path, window_ms=10_000).windows(), 10_000)
    short = admitted(logs.windows(), 1000)
    # The first one has rounds of the start, which are the log's.
    assert long[1:] == pytest.approx(np.mean(short.reshape(6, 10, 3), axis=1)[1:], abs=1e-9)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["speed=2"], "expected policy=, quota=, brokers=, round="),
        (["policy=best"], "expected policy=one of max-min"),
        (["quota=gold"], "expected quota=GROUP:RATE"),
        (["quota=gold:1e99"], "expected quota=GROUP:RATE"),
        (["brokers=0"], "expected brokers=1 to 500"),
        (["policy=steal,round=2h"], "expected round=2s"),
        (["round=..s"], "expected round=2s"),
        (["brokers=1"] * (SCENARIOS_MAX + 1), "expected at most 8 scenarios, got 9"),
    ],
)
def test_what_is_no_scenario_is_refused(texts: list[str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse(texts)
