"""The usage log as a table for Spark: `spark.read.format("rgd")`; `stream` has `spark.readStream`.

    spark.dataSource.register(RgdRows)
    spark.read.format("rgd").option("from_ms", 1795234300000).load(["log/broker-1", "log/broker-2"])

Law: one partition a segment, read in the executor, in Arrow batches; damage is a row, never a
failure. Options: `from_ms` (inclusive) and `to_ms` (exclusive), ms since 1970 by the brokers' clocks;
segments outside are not opened by any task, earlier entries are skipped by their broker metadata.

Comparisons of `broker_timestamp` are pushed down as the same range, if the option `push_filters` says
so: Spark refuses a source that offers this while `spark.sql.python.filterPushdown.enabled` is off,
and a source cannot ask it. `rgd.analysis.session.read_rows` sets the option by the setting.
The report itself takes `rgd.analysis.reading`: a source costs Spark three more Python processes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType
from typing_extensions import override

from rgd.analysis.asked import TimeRange
from rgd.analysis.discovery import find_segments, segments_within
from rgd.analysis.partitions import SegmentPartition, read_partition
from rgd.analysis.schema import ROWS, ddl

_TIME: Final = ("broker_timestamp",)


class _RowsReader(DataSourceReader):
    """Plans a partition a segment."""

    def __init__(self, options: dict[str, str]) -> None:
        self._paths = _paths(options)
        self._within = TimeRange(_number(options, "from_ms"), _number(options, "to_ms"))

    @override
    def partitions(self) -> Sequence[InputPartition]:
        segments = segments_within(find_segments(self._paths), self._within)
        return [SegmentPartition(segment, self._within) for segment in segments]

    @override
    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)


class _PushingRowsReader(_RowsReader):
    """The same, for a Spark that pushes filters down."""

    @override
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take comparisons of the time, which the range applies to every entry; give back the rest."""
        for one in filters:
            narrowed = _narrowed(self._within, one)
            if narrowed is None:
                yield one
            else:
                self._within = narrowed


class RgdRows(DataSource):
    """`spark.read.format("rgd")`: `schema.ROWS`."""

    @classmethod
    @override
    def name(cls) -> str:
        return "rgd"

    @override
    def schema(self) -> str:
        return ddl(ROWS)

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        options = dict(self.options)
        pushes = options.get("push_filters", "false").lower() == "true"
        return _PushingRowsReader(options) if pushes else _RowsReader(options)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        # Needs Spark 4.2; tables do not.
        from rgd.analysis.stream import RowsStream

        return RowsStream(_paths(dict(self.options)), self.options)


def _narrowed(within: TimeRange, one: Filter) -> TimeRange | None:
    """The range with a comparison of the time applied; None for any other filter."""
    match one:
        case GreaterThanOrEqual(attribute=attribute, value=int(value)) if attribute == _TIME:
            return replace(within, from_ms=max(value, within.from_ms or value))
        case GreaterThan(attribute=attribute, value=int(value)) if attribute == _TIME:
            return replace(within, from_ms=max(value + 1, within.from_ms or value + 1))
        case LessThan(attribute=attribute, value=int(value)) if attribute == _TIME:
            return replace(within, to_ms=min(value, within.to_ms or value))
        case LessThanOrEqual(attribute=attribute, value=int(value)) if attribute == _TIME:
            return replace(within, to_ms=min(value + 1, within.to_ms or value + 1))
        case _:
            return None


def _paths(options: dict[str, str]) -> list[str]:
    """Spark hands one path as `path` and several as JSON in `paths`."""
    several = options.get("paths")
    if several is not None:
        return [str(path) for path in json.loads(several)]
    return [options["path"]] if "path" in options else []


def _number(options: dict[str, str], name: str) -> int | None:
    value = options.get(name)
    return None if value is None else int(value)
