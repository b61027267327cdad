"""Reports over tiers: tasks read them by ranges, and of a time range only what holds it.

Not covered: executors on other machines.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rgd.adapters.usagelog.index import index_path, mend
from rgd.analysis.asked import Asked, TimeRange
from rgd.analysis.errors import AnalysisError
from rgd.analysis.report import run_report
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import NS_PER_S, Kind, Pair, to_milli
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import LogTier, checksum_of
from rgd.wire.segment import segment_name
from sim.usage_log import SegmentWriter
from tests.support.columns import shares_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("workers_see_s3")]

#: Tiers of 30 days on disk and of 3 in a bucket, whose server is slow: four segments a day of rounds of 10 s.
SEGMENTS = {"folder": 120, "s3": 12}
ROUNDS = 2160
ROUND_MS = 10_000
SEGMENT_MS = ROUNDS * ROUND_MS
START_MS = 1_795_219_200_000
#: The only one that has a log in it; a report that opened another would find bytes that are none.
READ = 7
HOUR = TimeRange(
    START_MS + READ * SEGMENT_MS + 6_600_000, START_MS + READ * SEGMENT_MS + 10_200_000
)


def kind_of(place: str) -> str:
    """Of a tier."""
    return "s3" if place.startswith("s3:") else "folder"


def record(sequence: int) -> RoundRecord:
    """A round in which 70 of 100 wanted were admitted a second."""
    rows = [
        ShareRow(
            usage=UsageRow(
                group=f"group-{number}",
                kind=Kind.PUBLISH,
                topics=1,
                admitted=Pair(to_milli(70), 0),
                wanted=Pair(to_milli(100), 0),
            ),
            share=(to_milli(70), None),
            quota=(to_milli(70), None),
            policy=SharePolicyName.MAX_MIN,
            refused=Pair(300, 0),
            admitted_total=Pair(700 * sequence, 0),
            wanted_total=Pair(1000 * sequence, 0),
        )
        for number in range(3)
    ]
    return RoundRecord(
        Sender("b1", 1),
        sequence,
        ROUND_MS * NS_PER_S // 1000,
        shares_of(*rows),
        ended_ns=sequence * ROUND_MS * NS_PER_S // 1000,
    )


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The segment that has a log in it, with its sparse index."""
    folder = tmp_path_factory.mktemp("log")
    writer = SegmentWriter(folder, "b1", segment_age_ms=SEGMENT_MS)
    writer.index = READ * ROUNDS
    for number in range(ROUNDS):
        if number == 30:
            # From here on, a record with a mark continues those before it.
            writer.encoder.restart()
        writer.append(record(number + 1), START_MS + READ * SEGMENT_MS + number * ROUND_MS)
    writer.close()
    written = folder / segment_name(READ * ROUNDS)
    mend(written)
    return written


@pytest.fixture
def tier(segment: Path, tier_place: str) -> str:
    """The tier."""
    log = LogTier(Objects(tier_place), "usage/b1/1")
    data = segment.read_bytes()
    for number in range(SEGMENTS[kind_of(tier_place)]):
        first_ms = START_MS + number * SEGMENT_MS
        stored = data if number == READ else os.urandom(len(data))
        facts = TieredSegment(
            number * ROUNDS,
            (number + 1) * ROUNDS - 1,
            first_ms,
            first_ms + SEGMENT_MS - ROUND_MS,
            len(stored),
            checksum_of(stored),
        )
        log.put(facts, stored, index_path(segment).read_bytes())
    return tier_place


def test_an_hour_of_a_month_reads_less_than_a_hundredth_of_it(tier: str, tmp_path: Path) -> None:
    summary = run_report([tier], tmp_path / "out", asked=Asked(HOUR))

    assert [one["admitted"] for one in summary.groups] == [70.0] * 3
    facts = summary.to_json()["log"]
    assert (facts["segments"], facts["records"], facts["damaged_entries"]) == (1, 360, 0)
    assert (facts["missing_records"], facts["round_s"]) == (0, 10.0)
    # A hundredth of 30 days is a tenth of 3.
    hundredth = facts["stored_bytes"] * SEGMENTS["folder"] // SEGMENTS[kind_of(tier)] // 100
    assert 0 < facts["fetched_bytes"] < hundredth


@pytest.mark.parametrize("tier_place", ["s3"], indirect=True)
def test_workers_that_have_no_way_to_the_tier_are_one_line_with_the_remedy(
    tier: str, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(AnalysisError, match=r"cannot be reached.*; the tasks read") as failed:
        run_report([tier], tmp_path / "out", asked=Asked(HOUR))
    assert "\n" not in str(failed.value)
