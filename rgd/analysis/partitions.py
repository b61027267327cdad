"""What a task reads of the log: a part of a segment, for tables (`source`) and streams (`stream`) alike."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from rgd.analysis.asked import IndexRange, TimeRange
from rgd.analysis.discovery import Segment
from rgd.analysis.rows import batches
from rgd.analysis.segments import Contents, read_segment


class SegmentPartition(InputPartition):
    """A part of one segment."""

    def __init__(self, segment: Segment, within: TimeRange | IndexRange) -> None:
        super().__init__(segment.name)
        self.segment = segment
        self.within = within


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """The rows of a `SegmentPartition`, as Arrow batches; none of the partition that Spark makes up where there is none."""
    if not isinstance(partition, SegmentPartition):
        return iter(())
    name = partition.segment.name
    return batches(name, read_segment(partition.segment, Contents(name), partition.within))
