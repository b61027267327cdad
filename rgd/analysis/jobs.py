"""What Spark does for a report: read the clocks; read, reduce and judge the rows.

Law: rows stay in the tasks, and pieces between them. The driver gets the clocks' samples, what each
segment says of itself, the attachments, and the findings.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rgd.analysis.asked import Asked
from rgd.analysis.clocks import Clocks, align_clocks
from rgd.analysis.explained import check_found, groups_of, merged_attached
from rgd.analysis.headers import Sampling, logged_rounds
from rgd.analysis.log_facts import Stats
from rgd.analysis.schema import HEADERS, JUDGED, PIECES, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Work = Callable[[Iterator[Any]], Iterator[Any]]
_KEYS = ("group", "kind")


@dataclass(frozen=True, slots=True)
class Judged:
    """What comes back from the judging of the groups."""

    stats: list[Stats]
    attached: Mapping[str, list[str]]
    #: One for each group, kind and dimension, without the causes that only the driver knows.
    findings: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Job:
    """Some segments, and what is asked about them."""

    segments: tuple[str, ...]
    round_ms: float
    asked: Asked

    def compare_clocks(self, spark: "SparkSession", sampling: Sampling) -> tuple[Clocks, int]:
        """Learn from the records' headers how far clocks were off, and how many rounds there are."""
        job = self

        def read(places: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis.headers import segment_headers

            for segment in job.named(places):
                yield from segment_headers(segment, sampling, job.asked.within)

        headers = self._places(spark).mapInArrow(read, ddl(HEADERS)).toArrow()
        rounds = logged_rounds(headers, sampling, self.round_ms)
        return align_clocks(headers, sampling, self.round_ms), rounds

    def judge(self, spark: "SparkSession", clocks: Clocks, window_ms: int, windows: Path) -> Judged:
        """Reduce and judge all rows, and write the windows as Parquet to a new folder.

        Raises:
            NothingLogged: there is no usage of what is asked about.
        """
        from pyspark import StorageLevel

        pieces = self._places(spark).mapInArrow(self._reduce(clocks, window_ms), ddl(PIECES))
        together = pieces.repartition(*_KEYS).sortWithinPartitions(*_KEYS)
        judged = together.mapInArrow(self._judge(window_ms), ddl(JUDGED))
        # On disk: Java's heap is small, and what is judged is read twice and then no more.
        judged.persist(StorageLevel.DISK_ONLY)
        try:
            found = judged.where("findings is not null").select(*_KEYS, "findings").collect()
            attached = merged_attached(
                (row.group, row.findings) for row in found if row.group and row.kind is None
            )
            groups = groups_of(self.asked.tenants, attached)
            rows = judged.where("kind is not null").drop("findings")
            if groups is not None:
                rows = rows.where(rows["group"].isin(groups))
            rows.write.parquet(str(windows))
        finally:
            judged.unpersist()
        findings = [
            json.loads(row.findings)
            for row in found
            if row.kind is not None and (groups is None or row.group in groups)
        ]
        check_found(findings, self.asked)
        stats = [Stats.from_json(row.findings) for row in found if row.group is None]
        return Judged(stats, attached, findings)

    def _places(self, spark: "SparkSession") -> "DataFrame":
        """One partition a segment: the number of a row is the index of its segment."""
        count = len(self.segments)
        return spark.range(0, count, 1, count)

    def named(self, places: Iterator[Any]) -> Iterator[str]:
        """The segments at the indexes in an executor's batches."""
        for batch in places:
            for place in batch.column(0).to_pylist():
                yield self.segments[place]

    def _reduce(self, clocks: Clocks, window_ms: int) -> _Work:
        """An executor's work on indexes of segments: read them and reduce them to pieces."""
        job = self

        def read(places: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis.reading import segment_pieces

            for segment in job.named(places):
                yield from segment_pieces(
                    segment, window_ms, round_ms=job.round_ms, clocks=clocks, asked=job.asked
                )

        return read

    def _judge(self, window_ms: int) -> _Work:
        """An executor's work on pieces that stand together by group and kind."""
        round_ms, scenarios = self.round_ms, self.asked.scenarios

        def judge(pieces: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis.judging import judged

            return judged(pieces, window_ms, round_ms, scenarios=scenarios)

        return judge
