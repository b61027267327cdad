"""The usage log as a stream for Spark: `spark.readStream.format("rgd")`, with the rows of `source`.

    spark.dataSource.register(RgdRows)
    spark.readStream.format("rgd").option("startingOffsets", "latest").load("log/")

Law: a micro-batch is a range of indexes of each log, and holds the same rows whenever it is read (but for the
reason of damage), so a sink that knows its batches has each row once. The offset is, for each log, the
index of the next entry.

The last segment of a log may be written just now: its whole entries count, found by its last true mark
and the headers behind it. Damage is a row with the entry that follows it, at a log's end so long not at all.
A log that appears later begins at its first entry. Options (beside `path`, and `paths` as JSON):
- `startingOffsets`: `earliest` (default) or `latest`, where there is no checkpoint yet.
- `maxEntriesPerTrigger`: entries of a batch, in equal parts for each log, at least one; default all.
- `failOnDataLoss`: whether the query fails if entries that were not read are gone; default true. Otherwise
  it goes on at the first entry that is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from typing_extensions import override

from rgd.analysis.asked import ALWAYS, IndexRange
from rgd.analysis.discovery import Manifests, Segment, find_segments
from rgd.analysis.errors import DataLost
from rgd.analysis.partitions import SegmentPartition, read_partition
from rgd.errors import ConfigError, Fault
from rgd.storage.headers import read_found, walk
from rgd.storage.marks import true_marks
from rgd.wire.segment import Stored

#: By log, the index of the next entry to read.
Offset = dict[str, int]
#: By log, its segments in order.
Logs = dict[str, list[Segment]]


class RowsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of some logs, and reads their parts."""

    def __init__(self, paths: Sequence[str], options: Mapping[str, str]) -> None:
        """See the module.

        Raises:
            ConfigError: an option has no such value, or is one of tables alone.
        """
        self._paths = paths
        self._is_latest = _one_of(options, "startingOffsets", "earliest", "latest") == "latest"
        self._fails = _one_of(options, "failOnDataLoss", "true", "false") == "true"
        most = options.get("maxEntriesPerTrigger")
        if most is not None and not (most.isdecimal() and int(most)):
            raise _wrong("maxEntriesPerTrigger", "a whole number from 1")
        self._limit = ReadAllAvailable() if most is None else ReadMaxRows(int(most))
        for name in ("from_ms", "to_ms"):
            if name in options:
                raise _wrong(name, "is for `spark.read`; filter the stream by `broker_timestamp`")
        self._manifests: Manifests = {}
        #: Where a query ends that reads what is there when it starts.
        self._target: Offset | None = None

    @override
    def initialOffset(self) -> Offset:
        logs = self._logs()
        return _ends(logs) if self._is_latest else _begins(logs)

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        return self._limit

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _ends(self._logs())

    @override
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far each log may be read, in Spark's driver.

        Raises:
            DataLost: a log ends before what was read of it.
        """
        logs = self._logs()
        ends = _ends(logs) if self._target is None else self._target
        for log, following in start.items():
            end = ends.get(log, 0)
            if self._fails and end < following:
                raise _lost(log, f"it ends before entry {end}, and {following} is next")
        if isinstance(limit, ReadMaxRows):
            most = max(1, limit.max_rows // max(1, len(ends)))
            begins = _begins(logs)
            ends = {
                log: min(end, max(start.get(log, 0), begins.get(log, 0)) + most)
                for log, end in ends.items()
            }
        # Spark compares offsets as text.
        return dict(sorted((start | ends).items()))

    @override
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The segments with entries of a batch.

        Raises:
            DataLost: some are gone.
        """
        logs, parts = self._logs(), list[SegmentPartition]()
        for log, to in end.items():
            segments = logs.get(log, [])
            first = segments[0].first_index if segments else to
            begin = start.get(log, first)
            if self._fails and begin < min(first, to):
                raise _lost(log, f"entries {begin} to {min(first, to) - 1} were not read")
            parts += _parts(segments, begin, to)
        return parts

    @override
    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)

    def _logs(self) -> Logs:
        found = find_segments(self._paths, self._manifests)
        return {log: list(segments) for log, segments in groupby(found, lambda one: one.log)}


def _begins(logs: Logs) -> Offset:
    return {log: segments[0].first_index for log, segments in logs.items()}


def _ends(logs: Logs) -> Offset:
    return {log: _next_index(segments[-1]) for log, segments in logs.items()}


def _next_index(segment: Segment) -> int:
    """The index behind a segment's last whole entry."""
    if segment.manifest is not None:
        return segment.manifest.last_index + 1
    source = segment.ranges()
    marks = true_marks(source, segment.marks())
    offset, following = marks[-1].offset if marks else 0, segment.first_index
    indexes = [header.index for header in walk(source, offset)]
    if None in indexes:
        # As a batch counts them: whole entries, where a header may be that of a damaged one.
        found = read_found(source, offset)
        indexes = [one.entry.index for one in found if isinstance(one, Stored)]
    for index in indexes:
        following = (following if index is None else index) + 1
    return following


def _parts(segments: Sequence[Segment], start: int, end: int) -> Iterator[SegmentPartition]:
    """What a batch reads of one log. Of the segment before its first entry only the damage at the end."""
    for segment, following in zip_longest(segments, segments[1:]):
        first = segment.first_index
        behind = None if following is None else following.first_index
        has_tail = behind is not None and start <= behind < end
        if has_tail and start <= first:
            yield SegmentPartition(segment, ALWAYS)
        elif has_tail or (first < end and start < end and (behind is None or start < behind)):
            yield SegmentPartition(segment, IndexRange(start, end, has_tail))


def _one_of(options: Mapping[str, str], name: str, default: str, other: str) -> str:
    value = options.get(name, default).lower()
    if value not in {default, other}:
        raise _wrong(name, f"{default} or {other}")
    return value


def _wrong(name: str, expected: str) -> ConfigError:
    return ConfigError(Fault("readStream", name, expected))


def _lost(log: str, said: str) -> DataLost:
    return DataLost(
        f"{log}: {said}: retention or a crash took them. Set `failOnDataLoss` to false to go on with what "
        "is there, start with another checkpoint, or stream a tier that keeps entries for longer"
    )
