"""Windows hold what the counters counted: nothing lost, nothing doubled.

Not covered: what is fair about them (test_fairness).
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rgd.analysis.windows
from rgd.analysis.windows import GroupWindows
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of
from tests.unit.analysis.conftest import Logs, ReadLogs

GOLD = Usage("gold", admitted=70, wanted=90, quota=100, share=80, admitted_bytes=700)


def units(windows: GroupWindows, amount: str = "admitted", dimension: str = "messages") -> Any:
    """Whole units of each window and broker."""
    rates = getattr(windows.rates[dimension], amount)
    return np.round(rates * windows.seconds[:, None], 6)


def test_the_first_burst_of_a_group_is_counted_whole(tmp_path: Path, read_logs: ReadLogs) -> None:
    log_of(tmp_path, "broker-1", (1, Usage("gold", admitted=50, quota=100, rate_factor=0.6)))

    assert units(read_logs(tmp_path).windows()).ravel().tolist() == [50.0]


def test_what_is_lost_in_a_long_time_is_left_out_because_its_windows_cost_memory(
    tmp_path: Path, read_logs: ReadLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rgd.analysis.windows, "GAP_WINDOWS_MAX", 3)
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(2, GOLD)
    maker.lose(4, GOLD)
    maker.rounds(2, GOLD)
    maker.lose(3, GOLD)
    maker.rounds(1, GOLD)
    maker.close()

    windows = read_logs(tmp_path).windows()

    assert units(windows).ravel().tolist() == [70.0] * 8
    assert windows.rates["messages"].recovered.sum() == pytest.approx(210)


def test_a_row_that_repeats_an_older_report_counts_nothing_twice(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(2, GOLD)
    before = {key: list(totals) for key, totals in maker.totals.items()}
    maker.round(GOLD)
    after = maker.totals
    maker.totals = {key: [total - 70 for total in totals] for key, totals in before.items()}
    maker.round(Usage("gold", admitted=0, quota=100))
    maker.totals = after
    maker.round(GOLD)
    maker.close()

    assert units(read_logs(tmp_path).windows()).sum() == pytest.approx(4 * 70)


@pytest.mark.slow
@example(phases=[0], rounds=["restart", "lost", "busy"], window_ms=400, rows_max=1)
@given(
    phases=st.lists(st.integers(0, 999), min_size=1, max_size=3),
    rounds=st.lists(
        st.sampled_from(["busy", "slow", "lost", "silent", "roll", "restart", "stopped"]),
        min_size=1,
        max_size=25,
    ),
    window_ms=st.sampled_from([400, 1000, 3000]),
    rows_max=st.integers(1, 40),
)
def test_every_unit_is_in_one_window_however_the_log_is_cut(
    phases: list[int], rounds: list[str], window_ms: int, rows_max: int
) -> None:
    with TemporaryDirectory() as folder:
        counted = 0
        for place, phase in enumerate(phases):
            maker = LogMaker(Path(folder) / f"b{place}", f"b{place}", start_ms=START_MS + phase)
            counted += _play(maker, rounds)
            maker.close()
        windows = Logs(Path(folder), window_ms=window_ms, rows_max=rows_max).windows()

    assert units(windows).sum() == pytest.approx(counted, abs=0.01)
    assert (windows.seconds <= window_ms / 1000).all()


def _play(maker: LogMaker, rounds: list[str]) -> int:
    """Let rounds pass; what the counters have counted when they were last logged."""
    logged = 0
    since = 0
    maker.round(GOLD)
    logged += 70
    for kind in rounds:
        if kind == "roll":
            maker.roll()
        elif kind == "silent":
            maker.silent(3)
        elif kind == "restart":
            since = 0  # what was lost right before is lost for good
            maker.restart(down_ms=500)
        elif kind == "stopped":
            maker.stand_still(2500)
        elif kind == "lost":
            maker.lose(2, GOLD)
            since += 140
        else:
            rate = 70 if kind == "busy" else 7
            maker.round(Usage("gold", admitted=rate, wanted=90, quota=100))
            logged += since + rate
            since = 0
    return logged
