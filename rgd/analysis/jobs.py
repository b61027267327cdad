"""What Spark does for a report: read the clocks; read, reduce and judge the rows.

Law: rows stay in the tasks, and pieces between them. The driver gets the clocks' samples, what each
segment says of itself, the attachments, and the findings, in packets.
"""

import gc
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from rgd.analysis.asked import Asked, check_named, near
from rgd.analysis.clocks import Clocks, align_clocks
from rgd.analysis.continuity import check_distinct
from rgd.analysis.discovery import Segment
from rgd.analysis.headers import SAMPLE_LENGTH, Sampling, logged_rounds, round_length_ms
from rgd.analysis.log_facts import Stats
from rgd.analysis.packets import Packet, joined, opened, packed, packet_of, unpacked
from rgd.analysis.schema import HEADERS, arrow
from rgd.analysis.segments import Contents
from rgd.analysis.tenants import groups_of, merged_attached

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.core.rdd import RDD

#: Windows are written together until they have so many bytes: a file's table of its row groups would outgrow them.
ROW_GROUP_BYTES: Final = 4 << 20

#: A task holds the pieces of one bucket of groups. A core has one at least, and there is one for `BUCKET_BYTES` of log for
#: each round of a window, of which at most `BUCKET_ROUNDS_MAX` count.
BUCKET_BYTES: Final = 256 << 10
BUCKET_ROUNDS_MAX: Final = 16

#: A task reads whole segments, some of this many bytes; a core has one at least, if there are as many segments. More would
#: cost 50 to 80 ms of processor time each, whatever they read.
TASK_BYTES: Final = 8 << 20


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

    def compare_clocks(self, context: "SparkContext") -> Timing:
        """Learn from the records' headers how far clocks were off, and how long rounds are.

        Raises:
            NothingLogged: they know none of the groups that are asked about.
        """
        sampling = Sampling.of(sum(segment.log_bytes for segment in self.segments))
        headers = self._headers(context, sampling)
        while not headers.num_rows and sampling.period > SAMPLE_LENGTH:
            # The range is short, and none of its records is of the sample.
            sampling = Sampling(max(SAMPLE_LENGTH, sampling.period // 8))
            headers = self._headers(context, sampling)
        round_ms = round_length_ms(headers)
        rounds = logged_rounds(headers, sampling, round_ms)
        clocks = align_clocks(headers, round_ms)
        return Timing(clocks.as_stamped() if self.has_lake else clocks, round_ms, rounds)

    def _headers(self, context: "SparkContext", sampling: Sampling) -> Any:
        """A `pyarrow.Table` of `schema.HEADERS`."""
        import pyarrow as pa

        job = self

        def read(segments: Iterable[Segment]) -> Iterator[bytes | set[str]]:
            from rgd.analysis import lake_reader
            from rgd.analysis.headers import segment_headers

            contents = Contents("all of the task's")
            names = contents.groups if job.asked.names else None
            for segment in job.counted(segments):
                batches = (
                    lake_reader.headers_of(segment, sampling, names)
                    if segment.is_of_lake
                    else segment_headers(segment, sampling, job.asked.within, contents=contents)
                )
                yield from map(packet_of, batches)
            yield near(job.asked.names, contents.groups)

        made = self._segments(context).mapPartitions(read).collect()
        check_named(self.asked, set().union(*(one for one in made if isinstance(one, set))))
        packets = [opened(one) for one in made if isinstance(one, bytes)]
        return pa.concat_tables([arrow(HEADERS).empty_table(), *packets])

    def evaluate(
        self, context: "SparkContext", timing: Timing, window_ms: int, windows: str | None
    ) -> Results:
        """Reduce and judge all rows, and write the windows as Parquet to a place (`output.WindowFiles`), if there is one.

        Raises:
            DuplicateLog: segments hold the same records.
        """
        buckets = self._buckets(context, timing, window_ms)
        packets = self._segments(context).mapPartitions(self._reduce(timing, window_ms, buckets))
        together = packets.partitionBy(buckets, int)
        judged = together.mapPartitionsWithIndex(self._evaluate(timing, window_ms, windows))
        made = [json.loads(zlib.decompress(one)) for one in judged.collect()]
        stats = [Stats.from_json(one) for bucket in made for one in bucket["stats"]]
        check_distinct(run for one in stats for run in one.runs)
        attached = merged_attached(chain.from_iterable(one.contents.attached for one in stats))
        groups = groups_of(self.asked.tenants, attached)
        findings = [
            one
            for bucket in made
            for one in bucket["findings"]
            if groups is None or one["group"] in groups
        ]
        return Results(stats, attached, findings, groups)

    def _segments(self, context: "SparkContext") -> "RDD[Segment]":
        """The segments; small ones share a task."""
        count, size = len(self.segments), sum(segment.size for segment in self.segments)
        tasks = max(context.defaultParallelism, -(-size // TASK_BYTES))
        return context.parallelize(self.segments, min(count, tasks))

    def _buckets(self, context: "SparkContext", timing: Timing, window_ms: int) -> int:
        """How many buckets of groups there are; a task judges one."""
        size = sum(segment.log_bytes for segment in self.segments)
        rounds = min(BUCKET_ROUNDS_MAX, max(1, window_ms // timing.round_ms))
        return max(context.defaultParallelism, int(size // (rounds * BUCKET_BYTES)))

    def counted(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Segments that count what an executor fetches of them."""
        # Records make no cycles, and a search for some looks at all that are held: a tenth of the time.
        gc.disable()
        return (replace(segment, count=self.fetched.add) for segment in segments)

    def _reduce(
        self, timing: Timing, window_ms: int, buckets: int
    ) -> Callable[[Iterable[Segment]], Iterator[Packet]]:
        """An executor's work on segments: read them and reduce them to pieces, in packets."""
        job = self

        def pieces_of(segments: Iterable[Segment]) -> Iterator[Any]:
            from rgd.analysis import lake_reader
            from rgd.analysis.reading import segment_pieces

            for segment in job.counted(segments):
                if segment.is_of_lake:
                    yield from lake_reader.pieces_of(segment, window_ms, job.asked)
                    continue
                yield from segment_pieces(
                    segment,
                    window_ms,
                    round_ms=timing.round_ms,
                    clocks=timing.clocks,
                    asked=job.asked,
                )

        def reduce(segments: Iterable[Segment]) -> Iterator[Packet]:
            return packed(pieces_of(segments), buckets)

        return reduce

    def _evaluate(
        self, timing: Timing, window_ms: int, windows: str | None
    ) -> Callable[[int, Iterable[Packet]], Iterator[bytes]]:
        """An executor's work on the packets of one bucket: write the windows, return the rest as compressed JSON."""
        scenarios = self.asked.scenarios

        def run(bucket: int, packets: Iterable[Packet]) -> Iterator[bytes]:
            from rgd.analysis.evaluation import EVALUATED_PIECES, REPLAYED_PIECES, Evaluator
            from rgd.analysis.output import WindowFiles

            files = None if windows is None else WindowFiles(windows, bucket)
            # As objects they are five times as large.
            stats: list[str] = []
            findings: list[str] = []
            evaluator = Evaluator(window_ms, timing.round_ms, scenarios)

            def pieces() -> Iterator[bytes]:
                known = set[tuple[str, str]]()
                for _, packet in packets:
                    if isinstance(packet, bytes):
                        yield packet
                        continue
                    packet.contents.attached -= known
                    known |= packet.contents.attached
                    stats.append(json.dumps(packet.to_json()))

            def tables() -> Iterator[Any]:
                groups = unpacked(pieces(), REPLAYED_PIECES if scenarios else EVALUATED_PIECES)
                for made, found in map(evaluator.of_pieces, groups):
                    findings.extend(json.dumps(one, allow_nan=False) for one in found)
                    yield from made

            for table in joined(tables(), ROW_GROUP_BYTES):
                if files is not None:
                    files.add(table)
            if files is not None:
                files.close()
            text = f'{{"stats": [{",".join(stats)}], "findings": [{",".join(findings)}]}}'
            yield zlib.compress(text.encode(), zlib.Z_BEST_SPEED)

        return run
