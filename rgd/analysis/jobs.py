"""What Spark does for a report: read the clocks; read, reduce and judge the rows.

Law: rows stay in the tasks, and pieces between them. The driver gets the clocks' samples, what each
segment says of itself, the attachments, and the findings, in packets.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rgd.analysis.asked import Asked
from rgd.analysis.clocks import Clocks, align_clocks
from rgd.analysis.discovery import Segment
from rgd.analysis.headers import Sampling, logged_rounds, round_length_ms
from rgd.analysis.log_facts import Stats
from rgd.analysis.packets import opened
from rgd.analysis.schema import HEADERS, PACKED, PACKETS, ddl
from rgd.analysis.tenants import groups_of, merged_attached

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

_Work = Callable[[Iterator[Any]], Iterator[Any]]
#: The columns of `schema.EVALUATED` that the driver gets, in packets.
FOUND: Final = ("group", "kind", "findings")

#: Windows are written together until they have so many bytes: a file's table of its row groups would outgrow them.
ROW_GROUP_BYTES: Final = 4 << 20

#: A task holds the pieces of one bucket of groups. There are at least `BUCKETS_MIN` of them: one for `BUCKET_BYTES` of log for
#: each round of a window, of which at most `BUCKET_ROUNDS_MAX` count.
BUCKETS_MIN: Final = 16
BUCKET_BYTES: Final = 256 << 10
BUCKET_ROUNDS_MAX: Final = 16

#: A task reads whole segments, some of this many bytes; a core has this many tasks, if there are as many segments.
TASK_BYTES: Final = 8 << 20
TASKS_PER_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class Results:
    """What the driver gets when all groups are judged."""

    stats: list[Stats]
    attached: Mapping[str, list[str]]
    #: One for each group, kind and dimension, without the causes that only the driver knows.
    findings: list[dict[str, Any]]
    #: The groups of the tenants that were asked about; the windows of others are then removed. None: all groups.
    groups: list[str] | None


@dataclass(frozen=True, slots=True)
class Timing:
    """What the records' headers say."""

    clocks: Clocks
    #: Length of a round, and about how many there are.
    round_ms: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Job:
    """Some segments, and what is asked about them."""

    segments: tuple[Segment, ...]
    asked: Asked
    #: Spark's accumulator of the bytes that tasks fetched of logs.
    fetched: "Accumulator[int]"

    @property
    def has_lake(self) -> bool:
        """Whether some of it is in a lake."""
        return any(segment.is_of_lake for segment in self.segments)

    def compare_clocks(self, spark: "SparkSession") -> Timing:
        """Learn from the records' headers how far clocks were off, and how long rounds are."""
        job = self
        sampling = Sampling.of(sum(segment.log_bytes for segment in self.segments))

        def read(indexes: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis import minutes
            from rgd.analysis.headers import segment_headers

            for segment in job.segments_at(indexes):
                if segment.is_of_lake:
                    yield from minutes.headers_of(segment, sampling)
                else:
                    yield from segment_headers(segment, sampling, job.asked.within)

        headers = self._indexes(spark).mapInArrow(read, ddl(HEADERS)).toArrow()
        round_ms = round_length_ms(headers)
        rounds = logged_rounds(headers, sampling, round_ms)
        clocks = align_clocks(headers, round_ms)
        return Timing(clocks.uncorrected() if self.has_lake else clocks, round_ms, rounds)

    def evaluate(
        self, spark: "SparkSession", timing: Timing, window_ms: int, windows: str | None
    ) -> Results:
        """Reduce and judge all rows, and write the windows as Parquet to a place (`output.WindowFiles`), if there is one."""
        packets = self._indexes(spark).mapInArrow(self._reduce(timing, window_ms), ddl(PACKETS))
        together = packets.repartition("bucket").sortWithinPartitions("bucket")
        packets = together.mapInArrow(
            self._evaluate(timing, window_ms, windows), ddl(PACKED)
        ).toArrow()
        found = [row for packet in packets["packet"] for row in opened(packet).to_pylist()]
        attached = merged_attached(
            (row["group"], row["findings"]) for row in found if row["group"] and row["kind"] is None
        )
        groups = groups_of(self.asked.tenants, attached)
        findings = [
            json.loads(row["findings"])
            for row in found
            if row["kind"] is not None and (groups is None or row["group"] in groups)
        ]
        stats = [Stats.from_json(row["findings"]) for row in found if row["group"] is None]
        return Results(stats, attached, findings, groups)

    def _indexes(self, spark: "SparkSession") -> "DataFrame":
        """A row for each index of `segments`; small segments share a task."""
        count, size = len(self.segments), sum(segment.size for segment in self.segments)
        least = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
        return spark.range(0, count, 1, min(count, max(least, -(-size // TASK_BYTES))))

    def segments_at(self, indexes: Iterator[Any]) -> Iterator[Segment]:
        """The segments at the indexes in an executor's batches."""
        for batch in indexes:
            for index in batch.column(0).to_pylist():
                yield replace(self.segments[index], count=self.fetched.add)

    def _reduce(self, timing: Timing, window_ms: int) -> _Work:
        """An executor's work on indexes of segments: read them and reduce them to pieces, in packets."""
        job = self
        size = sum(segment.log_bytes for segment in self.segments)
        rounds = min(BUCKET_ROUNDS_MAX, max(1, window_ms // timing.round_ms))
        buckets = max(BUCKETS_MIN, int(size // (rounds * BUCKET_BYTES)))

        def pieces_of(indexes: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis import minutes
            from rgd.analysis.reading import segment_pieces

            for segment in job.segments_at(indexes):
                if segment.is_of_lake:
                    yield from minutes.pieces_of(segment, window_ms, job.asked)
                    continue
                yield from segment_pieces(
                    segment,
                    window_ms,
                    round_ms=timing.round_ms,
                    clocks=timing.clocks,
                    asked=job.asked,
                )

        def read(indexes: Iterator[Any]) -> Iterator[Any]:
            from rgd.analysis.packets import packed

            return packed(pieces_of(indexes), buckets)

        return read

    def _evaluate(self, timing: Timing, window_ms: int, windows: str | None) -> _Work:
        """An executor's work on packets in the order of their buckets: write the windows, return the rest."""
        scenarios = self.asked.scenarios

        def run(packets: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa
            import pyarrow.compute as pc
            from pyspark import TaskContext

            from rgd.analysis.evaluation import evaluate
            from rgd.analysis.output import WindowFiles
            from rgd.analysis.packets import joined, packet_of, unpacked

            pieces = unpacked(packets)
            task = TaskContext.get()
            assert task is not None, "a task has a context"
            files = None if windows is None else WindowFiles(windows, task.partitionId())
            batches = evaluate(pieces, window_ms, timing.round_ms, scenarios=scenarios)
            for table in joined(batches, ROW_GROUP_BYTES):
                if files is not None:
                    files.add(table.filter(pc.is_valid(table["kind"])).drop(["findings"]))
                found = table.filter(pc.is_valid(table["findings"])).select(FOUND)
                yield pa.RecordBatch.from_pydict({"packet": [packet_of(found)]})
            if files is not None:
                files.close()

        return run
