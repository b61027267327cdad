"""Reads a segment for the report, reduces it to pieces, and collects its statistics.

Law: an executor's output grows with the windows, not with the rounds. A batch of rows is reduced
before the next is read, so memory is bounded too. The last batch of a segment is one row with only
`stats` (JSON), so damage, gaps and counts are sent with the data, in the same job.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from rgd.analysis.clocks import AS_STAMPED, Clocks
from rgd.analysis.continuity import Continuity, Stretch
from rgd.analysis.log_facts import Stats
from rgd.analysis.pieces import reduce_rows
from rgd.analysis.rows import batches
from rgd.analysis.schema import PIECES, arrow
from rgd.analysis.segments import Contents, Damage, Logged, read_segment

#: Rows that are reduced together; the pieces of one window merge later, however they were cut.
REDUCED_ROWS_MAX: Final = 200_000


def segment_pieces(
    segment: str,
    window_ms: int,
    *,
    round_ms: float,
    clocks: Clocks = AS_STAMPED,
    rows_max: int = REDUCED_ROWS_MAX,
) -> Iterator[Any]:
    """The pieces of one segment, and its stats, as `pyarrow.RecordBatch`es of `schema.PIECES`."""
    contents = Contents(segment)
    continuity = Continuity(contents, round_ms)
    logged = read_segment(Path(segment), contents, timed=clocks.time_of)
    for batch in batches(segment, _followed(logged, continuity), rows_max=rows_max):
        reduced = reduce_rows(batch, window_ms, round_ms)
        yield from reduced.combine_chunks().to_batches()
    runs = [
        Stretch(
            segment,
            run.broker,
            run.incarnation,
            run.first_sequence,
            run.last_sequence,
            run.missing,
            run.first_ms,
            run.last_ms,
            run.is_closed,
            tuple(run.silent),
            *run.parts,
        )
        for run in continuity.runs
    ]
    seen = [(broker, low, at_ms) for (broker, low), at_ms in continuity.seen_ms.items()]
    yield _stats_batch(Stats(contents, runs, seen))


def _followed(
    found: Iterable[Logged | Damage], continuity: Continuity
) -> Iterator[Logged | Damage]:
    """Let `continuity` see every record on its way."""
    for item in found:
        if isinstance(item, Logged):
            continuity.note(item)
        yield item


def _stats_batch(stats: Stats) -> Any:
    import pyarrow as pa

    schema = arrow(PIECES)
    columns = [
        pa.array([stats.to_json()]) if field.name == "stats" else pa.nulls(1, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
