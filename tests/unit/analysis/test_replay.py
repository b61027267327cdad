"""Scenarios over logs whose truth is known by hand.

Not covered: the rules themselves (tests/property/test_shares.py, tests/simulation/test_model.py), how scenarios are shown (test_page).
"""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rgd.analysis.evaluation import Evaluator
from rgd.analysis.packets import whole_groups
from rgd.analysis.replay import replay
from rgd.analysis.row_columns import Floats
from rgd.analysis.scenarios import AS_LOGGED, SCENARIOS_MAX, Scenario, parse
from rgd.analysis.uneven import Uneven
from rgd.analysis.windows import GroupWindows
from rgd.errors import ConfigError
from sim.run import run
from sim.scenario import Demand, Ground
from sim.scenarios import SCENARIOS
from sim.usage_log import write_usage_logs
from tests.support.log_maker import LogMaker, Usage, log_of
from tests.unit.analysis.conftest import ReadLogs

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
    [pieces] = whole_groups(logs.pieces, 1)
    _, [finding] = Evaluator(1000, 1000.0, parse([*scenarios])).of_pieces(pieces)
    return {one["scenario"]: one for one in finding["what_if"]}


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


def test_brokers_are_folded_without_an_array_of_both_numbers_of_brokers(logs: Any) -> None:
    def folded(windows: GroupWindows, brokers: int) -> GroupWindows:
        return replay([windows], Scenario("", brokers=brokers), window_ms=1000, round_ms=1000.0)[0]

    many = folded(logs.windows(), 500)
    assert folded(many, 3).covered.tolist() == logs.windows().covered.tolist()
    tracemalloc.start()
    folded(many, 499)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < many.covered.nbytes * 499 / 2


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


def test_no_scenario_admits_more_than_the_quota_and_a_burst(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    """Of a log that has more for long: brokers were alone, or its shares were not those in force."""
    for broker in range(2):
        log_of(tmp_path, f"broker-{broker}", (40, Usage("gold", 150, 160, quota=200, share=50)))
    by = found(read_logs(tmp_path), "quota=*:x0.5", "policy=steal", "round=5s")
    assert [round(one["admitted"] / one["quota"], 2) for one in by.values()] == [1.01] * 4
    assert {one["overshoot_max"] for one in by.values()} == {1.25}


def simulated(folder: Path, read_logs: ReadLogs, *, seed: int, quota: float = 1.0) -> Any:
    """Logs of demand that is another one each round; the simulator runs the daemon's own core."""
    noise = SCENARIOS["noise"]

    def workload(ground: Ground) -> Demand:
        # Demand is a multiple of the mean share, so another quota would change it too.
        return noise.workload(replace(ground, mean_messages=noise.quota_per_daemon))

    rate = noise.quota_per_daemon * quota
    few = replace(noise, daemons=5, rounds=40, quota_per_daemon=rate, workload=workload)
    write_usage_logs(run(few, seed=seed).cluster, folder)
    return read_logs(folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_noise_is_replayed_within_one_percent(
    tmp_path: Path, read_logs: ReadLogs, seed: int
) -> None:
    by = found(simulated(tmp_path, read_logs, seed=seed), "quota=*:x1")
    assert abs(by["as logged"]["change"]) < 0.01


@pytest.mark.slow
def test_another_quota_admits_what_a_simulation_with_it_does(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    by = found(simulated(tmp_path / "logged", read_logs, seed=0), "quota=*:x1.25")
    truth = simulated(tmp_path / "truth", read_logs, seed=0, quota=1.25).found("group-000")
    assert by["quota=*:x1.25"]["admitted"] == pytest.approx(truth["admitted"], rel=0.03)


@given(
    arrays(np.float64, (4, 1), elements=st.floats(1e3, 1e9)),
    arrays(np.float64, (4, 1), elements=st.floats(0, 0.99)),
    arrays(np.float64, (4, 1), elements=st.floats(1e3, 1e9)),
)
def test_the_logged_share_admits_what_was_logged_and_a_larger_one_no_less(
    wanted: Floats, part: Floats, share: Floats
) -> None:
    demand = Uneven.of(wanted, wanted * part, share)
    at = demand.admitted(share)
    assert at == pytest.approx(wanted * part, rel=1e-6, abs=0.01)
    assert (demand.admitted(share * 1.5) >= at * (1 - 1e-9)).all()
    assert (demand.admitted(np.zeros_like(share)) == 0).all()
    assert demand.admitted(np.full_like(share, np.inf)) == pytest.approx(wanted)


def test_the_dimension_whose_share_is_used_most_explains_the_refusals() -> None:
    demand = Uneven.of(np.array([1e5, 1e6]), np.array([5e4, 5e5]), np.array([1e5, 5e5]))
    assert demand.admitted(np.array([1e5, 1e6])) == pytest.approx([1e5, 1e6])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["speed=2"], "expected policy=, quota=, brokers=, round="),
        (["policy=best"], "expected policy=one of max-min"),
        (["quota=gold"], "expected quota=GROUP:RATE"),
        (["brokers=0"], "expected brokers=1 to 500"),
        (["policy=steal,round=2h"], "expected round=2s"),
        (["round=..s"], "expected round=2s"),
        (["policy=steal,policy=max-min"], "expected policy once in a scenario"),
        (["quota=gold:1,quota=gold:2"], "expected quota=gold once in a scenario"),
        (["brokers=1"] * (SCENARIOS_MAX + 1), "expected at most 8 scenarios, got 9"),
    ],
)
def test_what_is_no_scenario_is_refused(texts: list[str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse(texts)
