"""Logs that do not tell the truth by themselves: a wrong clock, a stopped broker, a killed one.

Segments as daemons write them are read as the report reads them, without Spark.
Not covered: the same through Spark (tests/integration/spark), the arithmetic of clocks (test_clocks).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgd.analysis import log_wording, wording
from rgd.analysis.asked import TimeRange
from rgd.analysis.presence import Ending, Silence
from tests.support.log_maker import START_MS, LogMaker, Usage
from tests.unit.analysis.conftest import ReadLogs

HOUR_MS = 3_600_000

#: What each of three brokers does of a quota of 90 under overload, fairly.
FAIR = Usage("gold", admitted=30, wanted=60, quota=90, share=30)


def brokers(folder: Path, count: int = 3) -> list[LogMaker]:
    """Brokers that receive one another's reports."""
    makers = [LogMaker(folder / f"b{place}", f"b{place}") for place in range(count)]
    for maker in makers:
        maker.peers = [other for other in makers if other is not maker]
    return makers


def play(makers: list[LogMaker], rounds: int, *usages: Usage) -> None:
    """Let rounds pass, all brokers in turn."""
    for _ in range(rounds):
        for maker in makers:
            maker.round(*(usages or (FAIR,)))


def stop(makers: list[LogMaker]) -> None:
    """Stop all in order."""
    for maker in makers:
        maker.round(FAIR, last=True)
        maker.close()


def starved(found: dict[str, Any]) -> list[str]:
    return [one["broker"] for one in found["starved"]]


def test_a_clock_an_hour_ahead_changes_no_figure_and_is_stated(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    for ahead_ms in (HOUR_MS, -HOUR_MS):
        folder = tmp_path / str(ahead_ms)
        makers = brokers(folder)
        makers[1].clock_ahead_ms = ahead_ms
        play(makers, 39)
        stop(makers)

        logs = read_logs(folder)
        found, facts = logs.found(), logs.facts()

        # By the stamps it was two times of 40 s, an hour apart, in which brokers had all or nothing.
        assert facts.to_ms - facts.from_ms <= 41_000
        assert found["seconds"] <= 42
        assert found["utilisation"] == pytest.approx(1.0, abs=0.01)
        assert found["jain_mean"] == pytest.approx(1.0, abs=0.01)
        assert found["starved"] == []
        (clock,) = facts.to_json()["clocks"]
        assert clock["broker"] == "b1"
        assert clock["ahead_s"] == pytest.approx(ahead_ms / 1000, abs=1.0)
        assert log_wording.of_wrong_times(facts) == []
        for asked in {"within": TimeRange(from_ms=START_MS)}, {"is_compared": True}:
            (said,) = log_wording.of_wrong_times(replace(facts, **asked))
            assert "do not use" in said
        (said,) = log_wording.of_clocks(facts)
        assert f"b1's was 60.0 min {'ahead' if ahead_ms > 0 else 'behind'}" in said
        assert "corrected" in said


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, 20_000, -20_000])
def test_a_clock_that_jumps_in_the_middle_changes_no_figure(
    tmp_path: Path, read_logs: ReadLogs, jump_ms: int
) -> None:
    """Also backwards, when broker timestamps stand still until the clock has caught up."""
    makers = brokers(tmp_path)
    play(makers, 20)
    makers[2].clock_ahead_ms = jump_ms
    play(makers, 19)
    stop(makers)

    logs = read_logs(tmp_path)
    found, facts = logs.found(), logs.facts()

    assert found["seconds"] <= 42
    assert found["starved"] == []
    assert found["lowest_ratio"] > 0.8
    assert (facts.missing, facts.silences) == (0, ())
    (clock,) = facts.clocks.errors
    assert (clock.broker, round(clock.ahead_ms / 10_000)) == ("b2", jump_ms // 10_000)
    assert clock.from_ms == pytest.approx(START_MS + 21_000, abs=1500)
    assert "UTC" in log_wording.of_clocks(facts)[0]


def test_clocks_of_brokers_that_were_never_in_contact_are_warned_of(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    makers = brokers(tmp_path)
    for maker in makers:
        maker.peers = []
    makers[1].clock_ahead_ms = HOUR_MS
    play(makers, 10)
    stop(makers)

    facts = read_logs(tmp_path).facts()

    assert facts.to_json()["unaligned_clocks"] == ["b0", "b1", "b2"]
    (said,) = log_wording.of_clocks(facts)
    assert said.startswith("Warning: the times of b0, b1, b2 are as stamped")


def test_a_broker_that_was_stopped_is_silent_and_not_starved(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    """As after SIGSTOP: the round that it stood in lasts until it goes on, and little was admitted."""
    makers = brokers(tmp_path)
    stopped = makers[2]
    play(makers, 20)
    stopped.stand_still(15_000)
    play(makers[:2], 15, Usage("gold", admitted=45, wanted=60, quota=90))
    # What waited in its sockets was wanted at once when it went on, and mostly refused.
    stopped.round(Usage("gold", admitted=40, wanted=600, quota=90))
    play(makers[:2], 1)
    play(makers, 19)
    stop(makers)

    logs = read_logs(tmp_path)
    found, facts = logs.found(), logs.facts()

    assert starved(found) == []
    at_ms = START_MS + 20_000
    assert facts.silences == (Silence("b2", at_ms, at_ms + 16_000),)
    assert facts.to_json()["silent"] == [
        {"broker": "b2", "from_ms": at_ms, "to_ms": at_ms + 16_000}
    ]
    (said,) = log_wording.of_silences(facts)
    assert "silent 1 time" in said
    assert "b2 from 04:12:00 to 04:12:16 UTC (16 s)" in said
    # Nothing that it counted is lost by that.
    assert sum(one["admitted"] for one in found["brokers"]) == pytest.approx(found["admitted"])


@pytest.mark.parametrize("rolls", [False, True])
def test_time_without_records_and_without_sequences_is_silence_and_idle_time_is_not(
    tmp_path: Path, read_logs: ReadLogs, rolls: bool
) -> None:
    makers = brokers(tmp_path)
    idle, slept = makers[1:]
    play(makers, 10)
    if rolls:
        for maker in makers:
            maker.roll()
    play(makers[:1], 30)
    idle.silent(30)
    # Its machine slept: not even its monotonic clock ran, and no round was longer than others.
    slept.now_ms += 30_000
    play(makers, 10)
    stop(makers)

    facts = read_logs(tmp_path).facts()

    (silence,) = facts.silences
    assert silence.broker == "b2"
    assert (silence.to_ms - silence.from_ms) == pytest.approx(30_000, abs=1500)
    assert facts.clocks.errors == ()


def test_after_a_kill_no_log_is_reported_as_complete(tmp_path: Path, read_logs: ReadLogs) -> None:
    makers = brokers(tmp_path)
    play(makers, 10)
    makers[1].restart(down_ms=9000)
    play([makers[0], makers[2]], 9)
    play(makers, 10)
    stop(makers)

    logs = read_logs(tmp_path)
    facts = logs.facts()

    assert [end.ending for end in facts.ends] == [
        Ending.CLOSED,
        Ending.KILLED,
        Ending.CLOSED,
        Ending.CLOSED,
    ]
    (kill,) = facts.to_json()["kills"]
    assert (kill["broker"], kill["missing_up_to_s"]) == ("b1", 1.0)
    assert kill["at_ms"] == pytest.approx(START_MS + 10_000, abs=10)
    said = " ".join(wording.sentences([logs.found()], facts))
    assert "Nothing is missing" not in said
    assert "none was lost" not in said
    assert "Brokers ended without a closing record 1 time" in said
    assert "up to 1 s each time, is missing" in said
    # It was not there until it was back.
    (silence,) = facts.silences
    assert (silence.broker, silence.to_ms - silence.from_ms) == ("b1", 9000)


def test_a_broker_that_others_outlived_was_killed_and_the_last_ones_may_still_run(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    makers = brokers(tmp_path)
    play(makers, 10)
    for maker in makers[:2]:
        maker.peers = [other for other in makers[:2] if other is not maker]
    play(makers[:2], 20)
    for maker in makers:
        maker.close()

    facts = read_logs(tmp_path).facts()

    assert [end.ending for end in facts.ends] == [Ending.OPEN, Ending.OPEN, Ending.KILLED]
    assert facts.to_json()["open_ends"] == ["b0", "b1"]
    said = " ".join(log_wording.of_gaps(facts, recovered=False))
    assert "b0, b1 have no closing record" in said
    assert "b2 at " in said


def test_a_broker_that_is_idle_at_the_end_is_not_taken_for_killed(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    makers = brokers(tmp_path)
    play(makers, 10)
    # b2 reports every round, but nothing is asked of it.
    for _ in range(30):
        makers[2].silent(1)
        play(makers[:2], 1)
    for maker in makers:
        maker.close()

    facts = read_logs(tmp_path).facts()

    assert {end.ending for end in facts.ends} == {Ending.OPEN}


def test_a_closing_record_without_rows_is_enough(tmp_path: Path, read_logs: ReadLogs) -> None:
    makers = brokers(tmp_path, 1)
    play(makers, 5)
    makers[0].round(last=True)
    makers[0].close()

    assert [end.ending for end in read_logs(tmp_path).facts().ends] == [Ending.CLOSED]
