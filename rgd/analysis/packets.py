"""Pieces on their way between Spark's tasks: what Java moves is a number and some bytes.

Law: `unpacked` returns every piece that `packed` was given, those of a group and kind in one table. A group has one bucket, and a task
holds the pieces of one bucket. What segments say of themselves goes to the first bucket, each attachment once
for each call of `packed`, because every segment repeats it.

Decision 69 has the cost of moving the pieces' 45 columns through Java instead.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

import numpy as np

from rgd.analysis.log_facts import Stats
from rgd.analysis.row_columns import numbered
from rgd.analysis.schema import PIECES, arrow

#: Pieces that are packed together.
PACKED_MAX: Final = 100_000

#: A bucket and what goes there: pieces as compressed bytes, or what a segment says of itself.
Packet = tuple[int, bytes | Stats]


def packed(pieces: Iterable[Any], buckets: int) -> Iterator[Packet]:
    """Turn `pyarrow.RecordBatch`es of `schema.PIECES`, and `Stats` among them, into packets of each bucket."""
    held: list[Any] = []
    known: set[tuple[str, str]] = set()
    for batch in pieces:
        if isinstance(batch, Stats):
            batch.contents.attached -= known
            known |= batch.contents.attached
            yield 0, batch
            continue
        held.append(batch)
        if sum(map(len, held)) >= PACKED_MAX:
            yield from _packets(held, buckets)
            held = []
    if held:
        yield from _packets(held, buckets)


def unpacked(packets: Iterable[bytes], pieces_max: int) -> Iterator[Any]:
    """Turn the packets of one bucket's pieces into tables of whole groups."""
    import pyarrow as pa

    tables = list(map(opened, packets))
    if tables:
        table = pa.concat_tables(tables)
        tables.clear()
        yield from whole_groups(table, pieces_max)


def whole_groups(pieces: Any, pieces_max: int) -> Iterator[Any]:
    """Pieces by group and kind: tables of at most so many, or of one group and kind."""
    import pyarrow as pa

    pieces = pieces.combine_chunks()
    _, group = numbered(pieces["group"])
    kinds, kind = numbered(pieces["kind"])
    number = group * len(kinds) + kind
    order = np.argsort(number, kind="stable")
    ends = np.flatnonzero(np.diff(number[order], append=-1)) + 1
    begin = 0
    while begin < len(pieces):
        first, behind = np.searchsorted(ends, [begin, begin + pieces_max], "right")
        end = int(ends[max(first, behind - 1)])
        yield pieces.take(pa.array(order[begin:end]))
        begin = end


def _packets(batches: list[Any], buckets: int) -> Iterator[Packet]:
    import pyarrow as pa

    table = pa.Table.from_batches(batches, arrow(PIECES)).combine_chunks()
    names, group = numbered(table["group"])
    bucket = np.array([crc32(name.encode()) % buckets for name in names], np.int64)[group]
    order = np.argsort(bucket, kind="stable")
    table, bucket = table.take(pa.array(order)), bucket[order]
    starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    for start, end in pairwise([*starts.tolist(), len(table)]):
        rows = table[start:end]
        # Not the names of all other buckets' groups.
        own = rows["group"].cast(pa.string()).dictionary_encode()
        place = rows.schema.get_field_index("group")
        yield int(bucket[start]), packet_of(rows.set_column(place, "group", own))


def joined(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """Join tables until they have so many bytes."""
    import pyarrow as pa

    held: list[Any] = []
    held_bytes = 0
    for table in tables:
        held.append(table)
        held_bytes += table.nbytes
        if held_bytes >= size:
            yield pa.concat_tables(held)
            held, held_bytes = [], 0
    if held:
        yield pa.concat_tables(held)


def opened(packet: bytes) -> Any:
    """The `pyarrow.Table` in a packet."""
    import pyarrow as pa

    return pa.ipc.open_stream(packet).read_all()


def packet_of(table: Any) -> bytes:
    """A `pyarrow.Table` or `pyarrow.RecordBatch` as compressed bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write(table)
    return bytes(sink.getvalue())
