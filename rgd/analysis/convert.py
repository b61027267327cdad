"""The entry point of `rgd log convert`: from the places of logs to a lake (`rgd.analysis.lake`).

Law: usage errors are refused before Spark is started. A segment is converted by one task, which reads and
writes where they lie; the driver gets a number of rows for each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rgd.analysis.asked import ALWAYS, TimeRange
from rgd.analysis.discovery import find_segments, segments_within
from rgd.analysis.lake import claim, convert_segment
from rgd.analysis.log_facts import check_rows
from rgd.analysis.session import require_java, require_spark, started
from rgd.analysis.spark_errors import spark_errors


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion did."""

    #: Segments that were converted, and their rows of usage.
    segments: int
    rows: int
    #: Segments that the lake had already, or that have no whole entry yet.
    unchanged: int


def convert_logs(
    paths: Sequence[str],
    out: str,
    *,
    master: str | None = None,
    within: TimeRange = ALWAYS,
    progress: Callable[[str], None] = lambda _: None,
) -> Converted:
    """Convert the segments of some logs that are new or have grown.

    Args:
        paths: log folders, segment files and tiers (`discovery`).
        out: the lake: a folder, or `s3://BUCKET[/PREFIX]`.
        master: Spark's master URL; None is this machine.
        within: leaves out segments without entries of this time; the others are converted whole.
        progress: called with a few words on what is being done.

    Raises:
        ConfigError: `out` cannot be used.
        NoLog, NothingLogged: the logs cannot be used.
        JavaMissing, SparkMissing: Spark cannot be run here.
        AnalysisError: Spark failed on the way.
    """
    segments = segments_within(find_segments(paths), within)
    if not segments:
        check_rows([], within)
    require_spark()
    require_java()
    claim(out)
    progress(f"starting Spark for {len(segments)} segments")
    with started(master) as spark, spark_errors():
        progress(f"converting {len(segments)} segments")
        places = spark.parallelize(segments, len(segments))
        rows = places.map(lambda segment: convert_segment(segment, out)).collect()
    done = [count for count in rows if count is not None]
    return Converted(len(done), sum(done), len(segments) - len(done))
