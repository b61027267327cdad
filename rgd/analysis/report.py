"""The entry point: from the paths of logs to a report in a folder or a bucket.

    summary = run_report(["log/"], Path("report"), master=None, window_s=None, progress=print)

Law: usage errors are refused before Spark is started (paths, folder, options, Java), in one
line with a remedy. Damage is reported, and never refuses a report.

First the clocks in the records' headers are read and compared (`clocks`). Then one pass
over the data: each segment is read and reduced to pieces in one task. The pieces of a
group are joined, judged and summarised in one task (`evaluation`), which also writes the windows as
Parquet. The driver gets the findings, and draws the page from them and the windows.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rgd.analysis import compared, figures, output, what_if_wording, window_tables, wording
from rgd.analysis.asked import ALWAYS, EVERYTHING, Asked, check_found
from rgd.analysis.discovery import Segment, find_segments, segments_within
from rgd.analysis.errors import NothingLogged
from rgd.analysis.findings import worst_first
from rgd.analysis.jobs import Job, Results, Timing
from rgd.analysis.log_facts import LogFacts, check_rows, gather
from rgd.analysis.pieces import MINUTE_MS
from rgd.analysis.session import require_java, require_spark, started
from rgd.analysis.spark_errors import spark_errors
from rgd.analysis.steps import note_membership
from rgd.analysis.tenants import by_tenant
from rgd.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pyspark import SparkContext

    from rgd.analysis.page import Section

#: Groups (with kind and dimension) with plots on the page, and on it or in files of their own; the rest are in the table.
PLOTTED_MAX: Final = 24
DRAWN_MAX: Final = 200

#: Windows are whole milliseconds, and shorter than logs.
WINDOW_S_MIN: Final = 0.001
WINDOW_S_MAX: Final = 366 * 86_400

#: A round in more windows shows nothing more, and each takes memory.
WINDOWS_A_ROUND_MAX: Final = 10

#: About the most windows of a report whose length nobody gave: what it costs grows with them.
WINDOWS_MAX: Final = 2000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Summary:
    """The findings of a report; also `summary.json`."""

    #: One for each group, kind and dimension, the keys of docs/report.md.
    groups: tuple[dict[str, Any], ...]
    facts: LogFacts
    #: Where the page is: a path, or a bucket's URL.
    page: str
    #: What was asked.
    asked: Asked = EVERYTHING

    @property
    def tables(self) -> list[tuple[Sequence[str], list[tuple[str, ...]]]]:
        """Headings and cells for a terminal: of the groups, or the worst of them, and of what scenarios would have changed."""
        top = self.asked.top
        groups = worst_first(self.groups)[:top] if top else self.groups
        known = (wording.COLUMNS, [wording.table_row(group) for group in groups])
        scenarios = what_if_wording.rows(self.groups)
        return [known, *([(what_if_wording.COLUMNS, scenarios)] if scenarios else [])]

    @cached_property
    def tenants(self) -> list[dict[str, Any]]:
        """One for each tenant, kind and dimension."""
        return by_tenant(self.groups, self.facts.attached, self.asked.tenants)

    @property
    def sentences(self) -> list[str]:
        """The findings as sentences."""
        return [
            *wording.sentences(self.groups, self.facts, self.tenants),
            *compared.sentences(self.groups),
            *what_if_wording.sentences(self.groups),
        ]

    @property
    def fetched(self) -> str:
        """How much of the logs was fetched; they are read twice, first for the clocks."""
        fetched, stored = (figures.amount(size, "bytes") for size in self.facts.fetched)
        return f"{fetched} fetched of logs of {stored}"

    def to_json(self) -> dict[str, Any]:
        """`summary.json`."""
        return {
            "groups": list(self.groups),
            "tenants": self.tenants,
            "log": self.facts.to_json(),
        }


def run_report(
    paths: Sequence[str],
    out: Path | str,
    *,
    master: str | None = None,
    window_s: float | None = None,
    asked: Asked = EVERYTHING,
    progress: Progress = lambda _: None,
) -> Summary:
    """Make a fairness report of some logs.

    Args:
        paths: log folders, segment files and tiers (`discovery`); tasks read them, so each machine must see them.
        out: a folder, which with a remote `master` all machines must see, or `s3://BUCKET[/PREFIX]`.
        master: Spark's master URL; None is this machine.
        window_s: length of a window in seconds; None is one round, or in a log of over `WINDOWS_MAX` rounds as many as
            leave that many windows, rounded to whole seconds.
        asked: leaves out other times, groups and tenants, and has the scenarios and the range to compare with.
        progress: called with a few words on what is being done.

    Raises:
        ConfigError: `out` or `window_s` cannot be used.
        NoLog, NothingLogged, DuplicateLog: the logs cannot be used.
        JavaMissing, SparkMissing: Spark cannot be run here.
        TierError: the bucket of `out` cannot be read or written.
        AnalysisError: Spark failed on the way.
    """
    found = find_segments(paths, lakes=True)
    segments = segments_within(found, asked.within)
    if not segments:
        check_rows([], asked.within)
    output.check(out)
    _check_window(window_s, has_lake=any(segment.is_of_lake for segment in segments))
    require_spark()
    require_java()
    size = sum(segment.size for segment in segments)
    progress(f"starting Spark for {len(segments)} segments, {figures.amount(size, 'bytes')}")
    with output.staged(out) as staging:
        with started(master) as spark, spark_errors():
            progress("comparing clocks")
            job = Job(tuple(segments), asked, spark.accumulator(0))
            timing = job.compare_clocks(spark)
            window_ms = window_length_ms(window_s, timing.round_ms, timing.rounds)
            if job.has_lake:
                window_ms = -(-window_ms // MINUTE_MS) * MINUTE_MS
            progress("reading and judging")
            results = job.evaluate(spark, timing, window_ms, staging.windows)
            if asked.compare is not None:
                progress("comparing with the other time range")
                compared.note(results.findings, _then(spark, job, found, window_ms))
        facts = _facts(job, results, timing, window_ms, sum(segment.size for segment in found))
        progress("drawing")
        staging.fetch(results.groups)
        groups = tuple(sorted(results.findings, key=_order))
        summary = Summary(groups, facts, output.page_of(out), asked)
        _write_pages(summary, staging.folder)
        text = json.dumps(summary.to_json(), allow_nan=False)
        (staging.folder / output.SUMMARY).write_text(text + "\n", encoding="utf-8")
    return summary


def _then(
    spark: "SparkContext", job: Job, found: Sequence[Segment], window_ms: int
) -> list[dict[str, Any]]:
    """The findings of the time range to compare with, by windows of the same length.

    Raises:
        NothingLogged: there is no usage in it; no findings if groups are asked about.
    """
    assert job.asked.compare is not None
    within = job.asked.compare
    segments = segments_within(found, within)
    # The tenants' groups are those of the range that is reported.
    asked = replace(job.asked, within=within, tenants=frozenset(), scenarios=())
    other = replace(job, segments=tuple(segments), asked=asked)
    if not segments:
        check_rows([], within)
    try:
        timing = other.compare_clocks(spark)
        results = other.evaluate(spark, timing, window_ms, None)
        check_usage(results, asked)
    except NothingLogged:
        # A group that the range does not know has null there.
        if not asked.groups:
            raise
        return []
    return results.findings


def _facts(job: Job, results: Results, timing: Timing, window_ms: int, size: int) -> LogFacts:
    """Join what the segments say of themselves; steps that it explains get their cause.

    Raises:
        NothingLogged: there is no usage of what is asked about.
    """
    facts = gather(
        results.stats,
        round_ms=timing.round_ms,
        window_ms=window_ms,
        clocks=timing.clocks,
        attached=results.attached,
        within=job.asked.within,
    )
    check_usage(results, job.asked)
    for group in results.findings:
        note_membership(group, facts.changes, 2 * (window_ms + timing.round_ms))
    compared_too = job.asked.compare is not None
    return replace(facts, fetched=(job.fetched.value, size), is_compared=compared_too)


def check_usage(results: Results, asked: Asked) -> None:
    """Refuse a range without usage; a lake's segments may have rows before and behind it.

    Raises:
        NothingLogged: there is none of what is asked about.
    """
    check_found(results.findings, asked)
    if not results.findings and asked.within != ALWAYS:
        check_rows([], asked.within)


def _order(finding: dict[str, Any]) -> tuple[str, bool, bool]:
    """By group, publish first, messages first."""
    return (finding["group"], finding["kind"] != "publish", finding["dimension"] != "messages")


def _write_pages(summary: Summary, staging: Path) -> None:
    """Draw the worst groups: those of the page, and each of the others in a file of its own."""
    from rgd.analysis.page import render

    on_page = summary.asked.top or PLOTTED_MAX
    drawn = worst_first(summary.groups)[: summary.asked.top or DRAWN_MAX]
    if len(drawn) > on_page:
        (staging / output.GROUPS).mkdir()
    sections = _sections(drawn, on_page, staging, summary.facts)
    page = render(summary.groups, summary.facts, sections, summary.tenants)
    (staging / output.PAGE).write_text(page, encoding="utf-8")


def _sections(
    findings: Sequence[dict[str, Any]], on_page: int, staging: Path, facts: LogFacts
) -> list["Section"]:
    """Draw findings, of which those behind the first ones are written; some windows are in memory at once."""
    import pyarrow.compute as pc

    from rgd.analysis.page import Section, render_group

    drawn: dict[int, Section] = {}
    keys = ("group", "kind", "dimension")
    numbers = {tuple(one[key] for key in keys): number for number, one in enumerate(findings)}
    names = {finding["group"] for finding in findings}
    for table in output.read_windows(staging / output.WINDOWS, names, window_tables.DRAWN):
        columns = [table[key] for key in keys]
        for of in numbers.keys() & zip(*(one.to_pylist() for one in columns), strict=True):
            number, its = numbers[of], table.filter(reduce(pc.and_, map(pc.equal, columns, of)))
            file = None if number < on_page else f"{output.GROUPS}/{number + 1:03}.html"
            drawn[number] = section = Section.of(findings[number], its, facts, file)
            if file is not None:
                (staging / file).write_text(render_group(section, facts), encoding="utf-8")
                drawn[number] = replace(section, chart=None)
    return [drawn[number] for number in sorted(drawn)]


def _check_window(window_s: float | None, *, has_lake: bool) -> None:
    if has_lake and window_s is not None and window_s * 1000 % MINUTE_MS:
        expected = f"expected whole minutes for a lake, as 60 or 3600, got {window_s:g}"
        raise ConfigError(Fault("command line", "--window-s", expected))
    if window_s is not None and not WINDOW_S_MIN <= window_s <= WINDOW_S_MAX:
        expected = (
            f"expected a number of seconds, {WINDOW_S_MIN} to {WINDOW_S_MAX}, got {window_s:g}"
        )
        raise ConfigError(Fault("command line", "--window-s", expected))


def window_length_ms(window_s: float | None, round_ms: float, rounds: int) -> int:
    """The given window, or as many rounds as leave some `WINDOWS_MAX` windows of a log, rounded to whole seconds.

    Raises:
        ConfigError: rounds have too many of the given ones.
    """
    if window_s is not None and window_s * 1000 * WINDOWS_A_ROUND_MAX < round_ms:
        least = round_ms / 1000 / WINDOWS_A_ROUND_MAX
        expected = f"expected at least {least:g} s, because a round lasts {round_ms / 1000:g} s, got {window_s:g}"
        raise ConfigError(Fault("command line", "--window-s", expected))
    if window_s is not None:
        return round(window_s * 1000)
    return max(1, round(round_ms * max(1, -(-rounds // WINDOWS_MAX)) / 1000)) * 1000
