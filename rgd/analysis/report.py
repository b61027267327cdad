"""The entry point: from the paths of logs to a report in a folder.

    summary = run_report(["log/"], Path("report"), master=None, window_s=None, progress=print)

Law: usage errors are refused before Spark is started (paths, folder, options, Java), in one
line with a remedy. Damage is reported, and never refuses a report.

First the clocks in the records' headers are read and compared (`clocks`). Then one pass
over the data: each segment is read and reduced to pieces in its partition, the pieces of each
group are joined, judged and summarised in one task (`judging`), and the windows are
written as Parquet. The findings come back with them; the page is drawn here.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rgd.analysis import figures, output, wording
from rgd.analysis.clocks import Clocks, align_clocks
from rgd.analysis.continuity import check_distinct
from rgd.analysis.explained import by_tenant, merged_attached, note_membership
from rgd.analysis.findings import worst_first
from rgd.analysis.headers import Sampling, logged_rounds
from rgd.analysis.log_facts import LogFacts, Stats, gather, probe_round_ms
from rgd.analysis.schema import HEADERS, JUDGED, PIECES, ddl
from rgd.analysis.segments import find_segments
from rgd.analysis.session import require_java, require_spark, session
from rgd.analysis.spark_errors import spark_errors
from rgd.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Most groups (with kind and dimension) with a section with plots; the rest are in the table only.
PLOTTED_MAX: Final = 24

#: Windows are whole milliseconds, and shorter than logs.
WINDOW_S_MIN: Final = 0.001
WINDOW_S_MAX: Final = 366 * 86_400

#: About the most windows of a report whose length nobody gave: what it costs grows with them.
WINDOWS_MAX: Final = 2000

Progress = Callable[[str], None]
Read = Callable[[Iterator[Any]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Summary:
    """The findings of a report; also `summary.json`."""

    #: One for each group, kind and dimension, the keys of docs/report.md.
    groups: tuple[dict[str, Any], ...]
    facts: LogFacts
    #: Where the page is.
    page: Path

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings for a terminal."""
        return wording.COLUMNS

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Cells for a terminal, a row for each of `groups`."""
        return [wording.table_row(group) for group in self.groups]

    @property
    def sentences(self) -> list[str]:
        """The findings as sentences."""
        return wording.sentences(self.groups, self.facts)

    def to_json(self) -> dict[str, Any]:
        """`summary.json`."""
        return {
            "groups": list(self.groups),
            "tenants": by_tenant(self.groups, self.facts.attached),
            "log": self.facts.to_json(),
        }


def run_report(
    paths: Sequence[str],
    out: Path,
    *,
    master: str | None = None,
    window_s: float | None = None,
    progress: Progress = lambda _: None,
) -> Summary:
    """Make a fairness report of some logs.

    Args:
        paths: log folders and segment files.
        out: folder to write `report.html`, `summary.json` and `windows/` to; with a remote `master`
            it must be one that all machines see.
        master: Spark's master URL; None is this machine.
        window_s: length of a window in seconds; None is one round, rounded to whole seconds, or
            in a log of over `WINDOWS_MAX` rounds as many as leave that many windows.
        progress: called with a few words on what is being done.

    Raises:
        ConfigError: `out` or `window_s` cannot be used.
        NoLog, NothingLogged, DuplicateLog: the logs cannot be used.
        JavaMissing, SparkMissing: Spark cannot be run here.
        AnalysisError: Spark failed on the way.
    """
    segments = find_segments(paths)
    output.check(out)
    _check_window(window_s)
    require_spark()
    round_ms = probe_round_ms(segments)
    require_java()
    size = sum(segment.stat().st_size for segment in segments)
    progress(f"starting Spark for {len(segments)} segments, {figures.amount(size, 'bytes')}")
    with output.staged(out) as staging:
        with session(master) as spark, spark_errors():
            progress("comparing clocks")
            names = [str(path) for path in segments]
            clocks, rounds = _compare_clocks(spark, names, Sampling.of(size), round_ms)
            window_ms = window_length_ms(window_s, round_ms, rounds)
            progress("reading and judging")
            facts, groups = _run_jobs(spark, names, staging, (round_ms, window_ms), clocks)
        progress("drawing")
        summary = Summary(tuple(groups), facts, out / output.PAGE)
        _write_page(summary, staging)
        text = json.dumps(summary.to_json(), indent=1, allow_nan=False)
        (staging / output.SUMMARY).write_text(text + "\n", encoding="utf-8")
    return summary


def _compare_clocks(
    spark: "SparkSession", segments: list[str], sampling: Sampling, round_ms: float
) -> tuple[Clocks, int]:
    """Learn from the records' headers how far clocks were off, and how many rounds there are."""
    read = _header_reader(segments, sampling)
    headers = _places(spark, segments).mapInArrow(read, ddl(HEADERS)).toArrow()
    rounds = logged_rounds(headers, sampling, round_ms)
    return align_clocks(headers, sampling, round_ms), rounds


def _places(spark: "SparkSession", segments: list[str]) -> "DataFrame":
    """One partition a segment: the number of a row is the index of its segment."""
    count = len(segments)
    return spark.range(0, count, 1, count)


def _run_jobs(
    spark: "SparkSession",
    segments: list[str],
    staging: Path,
    lengths: tuple[float, int],
    clocks: Clocks,
) -> tuple[LogFacts, list[dict[str, Any]]]:
    """Run Spark over the segments; `lengths` are those of a round and of a window in ms."""
    from pyspark import StorageLevel

    round_ms, window_ms = lengths
    pieces = _places(spark, segments).mapInArrow(_reader(segments, lengths, clocks), ddl(PIECES))
    keys = ("group", "kind")
    together = pieces.repartition(*keys).sortWithinPartitions(*keys)
    judge = _judge(window_ms, round_ms)
    # On disk: Java's heap is small, and what is judged is read twice and then no more.
    judged = together.mapInArrow(judge, ddl(JUDGED)).persist(StorageLevel.DISK_ONLY)
    try:
        windows = judged.where("kind is not null").drop("findings")
        windows.write.parquet(str(staging / output.WINDOWS))
        found = judged.where("findings is not null").select(*keys, "findings").collect()
    finally:
        judged.unpersist()
    stats = [Stats.from_json(row.findings) for row in found if row.group is None]
    check_distinct(run for one in stats for run in one.runs)
    attached = merged_attached(
        (row.group, row.findings) for row in found if row.group is not None and row.kind is None
    )
    facts = gather(stats, round_ms=round_ms, window_ms=window_ms, clocks=clocks, attached=attached)
    groups = [json.loads(row.findings) for row in found if row.kind is not None]
    for group in groups:
        note_membership(group, facts.changes, 2 * (window_ms + round_ms))
    return facts, sorted(groups, key=_order)


def _header_reader(segments: list[str], sampling: Sampling) -> Read:
    """An executor's first work on indexes of segments: read their clocks."""

    def read(places: Iterator[Any]) -> Iterator[Any]:
        from rgd.analysis.headers import segment_headers

        for batch in places:
            for place in batch.column(0).to_pylist():
                yield from segment_headers(segments[place], sampling)

    return read


def _reader(segments: list[str], lengths: tuple[float, int], clocks: Clocks) -> Read:
    """An executor's work on indexes of segments: read them and reduce them to pieces."""
    round_ms, window_ms = lengths

    def read(places: Iterator[Any]) -> Iterator[Any]:
        from rgd.analysis.reading import segment_pieces

        for batch in places:
            for place in batch.column(0).to_pylist():
                yield from segment_pieces(
                    segments[place], window_ms, round_ms=round_ms, clocks=clocks
                )

    return read


def _judge(window_ms: int, round_ms: float) -> Read:
    """An executor's work on pieces that stand together by group and kind: join, judge, summarise."""

    def judge(pieces: Iterator[Any]) -> Iterator[Any]:
        from rgd.analysis.judging import judged

        return judged(pieces, window_ms, round_ms)

    return judge


def _order(finding: dict[str, Any]) -> tuple[str, bool, bool]:
    """By group, publish first, messages first."""
    return (finding["group"], finding["kind"] != "publish", finding["dimension"] != "messages")


def _write_page(summary: Summary, staging: Path) -> None:
    """Draw the worst groups; write the page."""
    from rgd.analysis.page import Section, render

    sections = [
        Section.of(finding, _windows_of(finding, staging / output.WINDOWS), summary.facts)
        for finding in worst_first(summary.groups)[:PLOTTED_MAX]
    ]
    page = render(summary.groups, summary.facts, sections)
    (staging / output.PAGE).write_text(page, encoding="utf-8")


def _windows_of(finding: dict[str, Any], folder: Path) -> Any:
    """The windows of one group, kind and dimension, as a `pyarrow.Table`."""
    import pyarrow.parquet as pq

    keys = ("group", "kind", "dimension")
    return pq.read_table(folder, filters=[(key, "==", finding[key]) for key in keys])


def _check_window(window_s: float | None) -> None:
    if window_s is not None and not WINDOW_S_MIN <= window_s <= WINDOW_S_MAX:
        expected = (
            f"expected a number of seconds, {WINDOW_S_MIN} to {WINDOW_S_MAX}, got {window_s:g}"
        )
        raise ConfigError(Fault("command line", "--window-s", expected))


def window_length_ms(window_s: float | None, round_ms: float, rounds: int) -> int:
    """The given window, or as many whole rounds as leave some `WINDOWS_MAX` windows of a log."""
    if window_s is not None:
        return round(window_s * 1000)
    return max(1, round(round_ms / 1000)) * 1000 * max(1, -(-rounds // WINDOWS_MAX))
