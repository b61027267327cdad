"""Reads a segment for the report, reduces it to pieces, and collects its statistics.

Law: an executor's output grows with the windows, not with the rounds. A chunk of rows is reduced
before the next is read, so memory is bounded too. Behind the pieces of a segment are a row with
`group` and `stats` for each group that its policies attach, and one with only `stats` (JSON), so
damage, gaps and attachments are sent with the data, in the same job.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rgd.analysis.asked import EVERYTHING, Asked
from rgd.analysis.chunks import Names, note_totals, rows_of
from rgd.analysis.clocks import AS_STAMPED, Clocks
from rgd.analysis.continuity import Continuity, Stretch
from rgd.analysis.log_facts import Stats
from rgd.analysis.pieces import reduce_rows
from rgd.analysis.places import Segment
from rgd.analysis.schema import PIECES, arrow
from rgd.analysis.segments import Contents, Damage, Logged, read_segment

#: Rows that are reduced together; the pieces of one window merge later, however they were cut.
REDUCED_ROWS_MAX: Final = 200_000


def segment_pieces(
    segment: Segment,
    window_ms: int,
    *,
    round_ms: float,
    clocks: Clocks = AS_STAMPED,
    asked: Asked = EVERYTHING,
    rows_max: int = REDUCED_ROWS_MAX,
) -> Iterator[Any]:
    """The pieces of one segment, and its stats, as `pyarrow.RecordBatch`es of `schema.PIECES`.

    Args:
        segment: where it is.
        window_ms: length of a window.
        round_ms: length of a round.
        clocks: what is known of the brokers' clocks.
        asked: leaves out other times and groups; tenants are not known here.
        rows_max: rows that are reduced together.
    """
    contents = Contents(segment.name)
    continuity = Continuity(contents, round_ms)
    names = Names(asked.groups)
    found = read_segment(segment, contents, asked.within, timed=clocks.time_of)
    for records in _chunks(found, continuity, rows_max):
        rows = rows_of(records, names)
        note_totals(rows, names, continuity.gaps)
        continuity.gaps.clear()
        reduced = reduce_rows(rows, names, window_ms, round_ms)
        yield from reduced.combine_chunks().to_batches()
    yield _batch(_attached(contents.attached))
    yield _batch({"stats": [_stats(contents, continuity).to_json()]})


def _chunks(
    found: Iterable[Logged | Damage], continuity: Continuity, rows_max: int
) -> Iterator[list[Logged]]:
    """The records some at a time; `continuity` sees each on its way."""
    records: list[Logged] = []
    rows = 0
    for item in found:
        if isinstance(item, Damage):
            continue
        continuity.note(item)
        records.append(item)
        rows += len(item.record.rows)
        if rows >= rows_max:
            yield records
            records, rows = [], 0
    if records:
        yield records


def _attached(attached: Mapping[str, set[str]]) -> dict[str, list[str]]:
    pairs = [(group, key) for key, groups in attached.items() for group in groups]
    return {"group": [group for group, _ in pairs], "stats": [key for _, key in pairs]}


def _stats(contents: Contents, continuity: Continuity) -> Stats:
    runs = [
        Stretch(
            contents.segment,
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
    return Stats(contents, runs, seen)


def _batch(columns: Mapping[str, list[str]]) -> Any:
    """A batch of these columns; the others are null."""
    import pyarrow as pa

    schema = arrow(PIECES)
    rows = len(columns["stats"])
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
