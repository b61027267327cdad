"""Figures and findings in words.

Not covered: how a terminal or a page lays them out.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgd.analysis import figures, what_if_wording, wording
from rgd.analysis.log_facts import LogFacts
from tests.support.log_maker import Usage, log_of
from tests.unit.analysis.conftest import ReadLogs

FACTS = LogFacts(
    segments=2,
    records=180,
    brokers=("broker-1", "broker-2"),
    from_ms=1_795_234_300_000,
    to_ms=1_795_234_390_000,
    round_ms=1000.0,
    window_ms=1000,
    foreign=0,
    damaged=0,
    damaged_bytes=0,
    damages=(),
    torn_bytes=0,
    missing=0,
)


@pytest.mark.parametrize(
    ("value", "dimension", "said"),
    [
        (None, "messages", figures.NOTHING),
        (0, "messages", "0"),
        (0.25, "messages", "0.25"),
        (12.34, "messages", "12.3"),
        (1234.5, "messages", "1,234"),
        (999, "bytes", "999 B"),
        (1_500_000, "bytes", "1.50 MB"),
        (2e15, "bytes", "2,000 TB"),
    ],
)
def test_an_amount_is_short_and_has_its_unit(
    value: float | None, dimension: str, said: str
) -> None:
    assert figures.amount(value, dimension) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, figures.NOTHING), (1.0, "100 %"), (0.976, "97.6 %"), (0.5, "50 %"), (0.003, "0.3 %")],
)
def test_a_percentage_is_exact_where_it_matters(value: float | None, said: str) -> None:
    assert figures.percent(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(1, "1 s"), (89.6, "89.6 s"), (150, "2.5 min"), (7200, "2.0 h")]
)
def test_a_length_of_time_has_a_fitting_unit(seconds: float, said: str) -> None:
    assert figures.span(seconds) == said


def finding(tmp_path: Path, read_logs: ReadLogs, quota: float | None = 100) -> dict[str, Any]:
    for broker, admitted in (("broker-1", 90), ("broker-2", 10)):
        log_of(tmp_path, broker, (5, Usage("gold", admitted, 90, quota=quota)))
    found: dict[str, Any] = read_logs(tmp_path).found()
    return found


def test_a_row_has_a_cell_for_each_column(tmp_path: Path, read_logs: ReadLogs) -> None:
    row = dict(zip(wording.COLUMNS, wording.table_row(finding(tmp_path, read_logs)), strict=True))

    assert row["group"] == "gold"
    assert row["wanted /s"] == "180"
    assert row["utilisation"] == "100 %"
    assert row["lowest ratio"] == "0.200"
    assert row["rounds to fair"] == figures.NOTHING
    assert row["starved"] == "5 s"


def test_scenarios_sum_groups_by_how_long_they_were_used(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    long = finding(tmp_path, read_logs) | {"what_if": [{"scenario": "policy=steal"}]}
    short = long | {"seconds": 0.05, "admitted": 0.0, "wanted": 1000.0}

    for row in what_if_wording.rows([long, short]):
        assert row[3:5] == ("100", "53 %")


def test_an_unfair_group_is_called_so_with_who_and_when(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    said = " ".join(wording.sentences([finding(tmp_path, read_logs)], FACTS))

    assert said.startswith("Brokers were starved in 1 of 1 group with a quota: gold.")
    assert "2 brokers logged 180 rounds of 1 group" in said
    assert "gold (publish, messages) wanted 180/s of a quota of 100/s and got 100/s" in said
    assert "split unfairly" in said
    assert "20 % of its max-min part (broker-2 at 04:11:40 UTC)" in said
    assert "starved (below 50 % of their part) 1 time, longest broker-2 for 5 s" in said
    assert "Nothing is missing" in said


def test_a_starved_broker_among_fair_ones_is_not_called_fair(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    starved = finding(tmp_path, read_logs) | {"jain_mean": 0.97}
    fair = starved | {"group": "tin", "starved": [], "starved_s": 0.0}

    assert "fairly among most brokers (Jain" in " ".join(wording.sentences([starved], FACTS))
    assert "fairly on the whole (Jain" in " ".join(wording.sentences([fair], FACTS))
    assert wording.sentences([fair, starved], FACTS)[0].endswith(
        "in 1 of 2 groups with a quota: gold."
    )
    assert wording.sentences([fair], FACTS)[0].startswith("No broker was starved in any of 1 group")


def test_without_a_quota_there_is_nothing_to_judge(tmp_path: Path, read_logs: ReadLogs) -> None:
    said = wording.sentences([finding(tmp_path, read_logs, None)], FACTS)

    assert "No group has a quota" in said[1]


def test_what_is_missing_is_reported_with_file_offset_and_reason(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    facts = replace(
        FACTS,
        missing=1,
        damaged=2,
        damaged_bytes=1234,
        damages=(("a/0.log", 99, "checksum"), ("a/0.log", 500, "torn")),
        torn_bytes=7,
    )

    said = wording.sentences([finding(tmp_path, read_logs)], facts)[-1]

    assert "1 record is missing." in said
    assert "2 stretches of the log could not be read (1,234 bytes; the first in a/0.log" in said
    assert "offset 99: checksum" in said
    assert "7 bytes at the end of segments" in said


def test_what_was_decided_while_no_policies_were_known_is_reported(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    facts = replace(FACTS, unknown_granted=1, unknown_refused=1200)

    said = " ".join(wording.sentences([finding(tmp_path, read_logs)], facts))

    assert "Nothing is missing" not in said
    assert "1 request was granted while no policies were known" in said
    assert "1,200 requests were refused while no policies were known" in said
