"""Converts segments to Parquet for any tool that reads it: the lake (docs/lake.md).

Law: each row of the logs is in the lake once, however often and from wherever its segment is converted, by however many
runs at once: a segment is known by its first entry, its files have names made of that and of how many of its bytes could be
read (`lake_names`), more of them replace fewer, and never the other way round. Its row in `segments` comes last. A segment
of which nothing can be read is known by its name, and has no rows; it is forgotten when it can be read.

A task's memory is bounded: at most `CHUNK_ROWS_MAX` rows are columns, and `PART_ROWS_MAX` rows Parquet.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, groupby, islice
from typing import Any, Final

import numpy as np

from rgd.analysis.continuity import incarnation_name
from rgd.analysis.discovery import Segment
from rgd.analysis.headers import Sampling, round_length_ms, segment_headers
from rgd.analysis.lake_names import (
    MARK,
    MARKER,
    MARKER_BYTES_MAX,
    file_name,
    key_and_size,
    newest,
    row_name,
)
from rgd.analysis.lake_schema import LAKE, columns_of
from rgd.analysis.log_facts import Stats
from rgd.analysis.output import unfit
from rgd.analysis.parquet import ParquetBytes
from rgd.analysis.pieces import MINUTE_MS
from rgd.analysis.reading import Reducer, chunks
from rgd.analysis.record_columns import by_row, clock_columns, sender_columns
from rgd.analysis.row_columns import KIND_NAMES, Table
from rgd.analysis.rows import named, usage_columns
from rgd.analysis.schema import HEADERS, arrow
from rgd.analysis.segments import Contents, Logged, read_segment
from rgd.core.exchange.columns import REFUSED_BY, ShareColumns
from rgd.storage.errors import ObjectMissing
from rgd.storage.headers import read_found
from rgd.storage.objects import Objects, patient
from rgd.wire.frame import Entry
from rgd.wire.log_policies import PolicyPart
from rgd.wire.row_range import RowRange
from rgd.wire.segment import LENGTH_SIZE, SegmentReader, Stored, Torn

#: Rows that are columns at once, and sorted together.
CHUNK_ROWS_MAX: Final = 100_000
#: Rows of one file.
PART_ROWS_MAX: Final = 2_000_000
#: Bytes of a first entry that a segment is known by.
KNOWN_BY_BYTES: Final = 64 << 10


def claim(out: str) -> None:
    """Make sure that a place is a lake of this version, or is empty and becomes one.

    Raises:
        ConfigError: it is neither.
        TierError: it cannot be read or written.
    """
    objects = _objects(out)
    with suppress(ObjectMissing):
        if objects.read_range(MARKER, 0, MARKER_BYTES_MAX) == MARK:
            return
        raise unfit(f"{out} is a lake of another version; name an empty folder or prefix")
    if objects.names("").keys() - {MARKER}:
        raise unfit(f"{out} is not empty and no lake; name an empty folder or prefix")
    objects.replace(MARKER, MARK)


def convert_segment(segment: Segment, out: str) -> int | None:
    """Convert one segment; how many rows of usage it has.

    None: as much of it was converted before, or it has no whole entry yet.

    Raises:
        TierError, OSError: it cannot be read, or the lake not written.
    """
    objects = patient(out)
    keys = _keys(segment)
    if not keys or _converted_size(objects, keys) >= segment.size:
        return None
    key, *former = keys
    round_ms, size = _round_and_readable(segment)
    if _converted_size(objects, keys) >= size:
        return None
    files = _Files(objects, key, size)
    stats = _write(segment, files, round_ms)
    if _converted_size(objects, keys) > size:
        files.remove()
        return None
    quality = _new_file("segments")
    quality.add(_table("segments", _quality(segment, stats)))
    objects.replace(row_name(key, size), quality.close())
    files.remove_old(former)
    return stats.contents.rows


def _round_and_readable(segment: Segment) -> tuple[float, int]:
    """The length of a round, ms, and how many bytes can be read; at least one, so that it is more than nothing."""
    import pyarrow as pa

    contents = Contents(segment.name)
    batches = segment_headers(segment, Sampling(), contents=contents)
    headers = pa.Table.from_batches(batches, arrow(HEADERS))
    readable = segment.size - contents.torn_bytes - contents.damaged_bytes
    return round_length_ms(headers), max(1, readable)


def _write(segment: Segment, files: "_Files", round_ms: float) -> Stats:
    """Write all tables but `segments`; what the segment says of itself."""
    contents = Contents(segment.name)
    reducer = Reducer(contents, MINUTE_MS, round_ms)
    policies: list[tuple[Entry, PolicyPart]] = []

    def note(entry: Entry, part: PolicyPart) -> None:
        policies.append((entry, part))

    found = read_segment(segment, contents, on_policies=note)
    for day, records in _chunks(reducer.records(found)):
        files.write("policies", day, _policies(policies))
        policies.clear()
        rows = RowRange.join(logged.record.rows for logged in records)
        files.write("rounds", day, _rounds(records))
        who = by_row(_senders(records), records, columns_of("usage"))
        files.write("usage", day, who | usage_columns(rows))
        files.write("refused_by", day, _refused(who, rows))
        files.add("minutes", day, reducer.pieces(records))
    if policies:
        day = _day(policies[-1][0].timestamp)
        files.write("policies", day, _policies(policies))
    files.close()
    return reducer.stats()


def _objects(out: str) -> Objects:
    try:
        return patient(out)
    except ValueError as exc:
        raise unfit(str(exc)) from exc


def _keys(segment: Segment) -> list[str]:
    """What a segment is known by, wherever it lies: its first entry that can be read; its name where none can.

    Behind it what it was known by if its first entry, or all of it, could not be read before. Empty: there may be an entry later.
    """
    source = segment.ranges()
    head = SegmentReader(0).feed(source.read(KNOWN_BY_BYTES, 0))
    found = chain(head, islice(read_found(source), len(head), None))
    stored = list(islice((one for one in found if isinstance(one, Stored)), 2))
    if not stored and all(isinstance(one, Torn) for one in read_found(source)):
        return []
    sizes = [min(LENGTH_SIZE + len(one.data), KNOWN_BY_BYTES) for one in stored]
    known_by = [source.read(size, one.offset) for size, one in zip(sizes, stored, strict=True)]
    return [_hash(data) for data in (*known_by, segment.name.encode())]


def _hash(known_by: bytes) -> str:
    return blake2b(known_by, digest_size=16).hexdigest()


def _converted_size(objects: Objects, keys: Sequence[str]) -> int:
    """How many bytes of a segment could be read when it was converted.

    Two rows of it are of a run that was killed before all that it replaced was removed; what is left of that goes now.
    """
    rows = [name for key in keys for name in objects.names(f"segments/key={key}")]
    size = newest(rows).get(keys[0], 0)
    if size and len(rows) > 1:
        _Files(objects, keys[0], size).remove_old(keys)
    return size


class _Files:
    """The files of one segment: of each table one is open, of the newest day."""

    def __init__(self, objects: Objects, key: str, size: int) -> None:
        self._objects = objects
        self._key = key
        self._size = size
        #: By table, the day and the file.
        self._open: dict[str, tuple[str, ParquetBytes]] = {}
        self._parts: dict[str, int] = {}
        self._written: list[str] = []

    def write(self, table: str, day: str, columns: Table) -> None:
        """Add rows of one day, sorted by group."""
        rows = _table(table, columns)
        by = [("group", "ascending"), ("kind", "ascending")]
        if rows.num_rows:
            self.add(table, day, rows.sort_by(by) if "group" in columns else rows)

    def add(self, table: str, day: str, rows: Any) -> None:
        """Add a `pyarrow.Table` of rows of one day."""
        of, file = self._open.get(table, ("", None))
        if file is None or of != day or file.rows >= PART_ROWS_MAX:
            self._end(table)
            file = _new_file(table)
            self._open[table] = day, file
        file.add(rows)

    def close(self) -> None:
        """Write what is left."""
        for table in list(self._open):
            self._end(table)

    def remove(self) -> None:
        """Remove all that was written."""
        for name in self._written:
            self._objects.delete(name)

    def remove_old(self, former: Sequence[str]) -> None:
        """Remove what was made of the segment when less of it could be read, also under former keys; rows in `segments` last.

        Of nothing written it is not known on which days it was, so whole tables are searched.
        """
        keys = {self._key, *former}
        folders = {name.rpartition("/")[0] for name in self._written}
        folders = folders or {*LAKE, "minutes"} - {"segments"}
        for folder in (*sorted(folders), *(f"segments/key={key}" for key in keys)):
            for name in self._objects.names(folder):
                key, size = key_and_size(name) or ("", 0)
                if key in keys and (key != self._key or size < self._size):
                    self._objects.delete(name)

    def _end(self, table: str) -> None:
        if table in self._open:
            day, file = self._open.pop(table)
            part = self._parts[table] = self._parts.get(table, -1) + 1
            name = file_name(table, day, self._key, self._size, part)
            self._objects.replace(name, file.close())
            self._written.append(name)


def _new_file(table: str) -> ParquetBytes:
    return ParquetBytes(columns_of(table), write_page_index=True)


def _table(table: str, columns: Table) -> Any:
    """Columns as a `pyarrow.Table` of the lake's types."""
    import pyarrow as pa

    schema = arrow(columns_of(table))
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _chunks(found: Iterable[Logged]) -> Iterator[tuple[str, list[Logged]]]:
    """Records of one day, some at a time; in the order of the log."""
    for day, of_day in groupby(found, lambda logged: _day(logged.timestamp_ms)):
        yield from ((day, records) for records in chunks(of_day, CHUNK_ROWS_MAX))


def _day(timestamp_ms: int) -> str:
    """The day of a time in ms since 1970, UTC."""
    return str(np.datetime64(timestamp_ms, "ms").astype("datetime64[D]"))


def _senders(records: Sequence[Logged]) -> Table:
    """[records] time, sender and length."""
    return {"time": [logged.timestamp_ms for logged in records], **sender_columns(records)}


def _rounds(records: Sequence[Logged]) -> Table:
    of = [logged.record for logged in records]
    plain = ("part", "parts", "isolated", "weight", "last", "lost")
    counts = ("ungoverned", "unknown_granted", "unknown_refused")
    return {
        "time": [logged.timestamp_ms for logged in records],
        **clock_columns(records),
        **{name: [getattr(record, name) for record in of] for name in (*plain, *counts)},
        "policies_hash": [f"{record.policies_hash:016x}" for record in of],
        "rows": [len(logged.record.rows) for logged in records],
        "index": [logged.index for logged in records],
    }


def _refused(who: Table, rows: ShareColumns) -> Table:
    """[refusals] by level: of each row the levels that refused anything."""
    import pyarrow as pa

    at, level = np.nonzero(np.any(rows.refused_by, axis=2))
    places = pa.array(at)
    amounts = rows.refused_by[at, level]
    usage = rows.usage
    return {
        **{name: column.take(places) for name, column in who.items()},
        "group": pa.array(usage.groups).take(places),
        "kind": named(usage.kinds[at], KIND_NAMES),
        "level": named(level, REFUSED_BY),
        "messages": amounts[:, 0],
        "bytes": amounts[:, 1],
    }


def _policies(logged: Sequence[tuple[Entry, PolicyPart]]) -> Table:
    """[policies] those of some entries."""
    texts = [(entry, part, *text) for entry, part in logged for text in part.texts]
    return {
        "time": [entry.timestamp for entry, *_ in texts],
        "broker": [part.sender.broker for _, part, *_ in texts],
        "incarnation": [incarnation_name(part.sender.incarnation) for _, part, *_ in texts],
        "policies_hash": [f"{part.policies_hash:016x}" for _, part, *_ in texts],
        "is_change": [part.is_change for _, part, *_ in texts],
        "key": [key for *_, key, _ in texts],
        "value": [None if value == "null" else value for *_, value in texts],
    }


def _quality(segment: Segment, stats: Stats) -> Table:
    """[1] what a segment is, and what is wrong with it."""
    contents = stats.contents
    plain = ("records", "rows", "foreign", "damaged", "damaged_bytes", "torn_bytes", "lost_entries")
    return {
        **{name: [getattr(contents, name)] for name in (*plain, "first_index", "last_index")},
        "segment": [segment.name],
        "size": [segment.size],
        "damages": [[f"{offset}: {reason}" for offset, reason in contents.damages]],
        "first_time": [contents.first_ms],
        "last_time": [contents.last_ms],
        "stats": [json.dumps(stats.to_json())],
    }
