"""Reads a segment for the report, reduces it to pieces, and collects its statistics.

Law: an executor's output grows with the windows, not with the rounds. A chunk of rows is reduced
before the next is read, so memory is bounded too. Behind the pieces of a segment come its `Stats`: damage, gaps and
attachments are sent with the data, in the same job.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rgd.analysis.asked import EVERYTHING, Asked
from rgd.analysis.clocks import AS_STAMPED, Clocks
from rgd.analysis.continuity import Continuity
from rgd.analysis.discovery import Segment
from rgd.analysis.log_facts import Stats
from rgd.analysis.pieces import reduce_rows
from rgd.analysis.row_columns import Series, note_totals, rows_of
from rgd.analysis.segments import Contents, Damage, Logged, read_segment

#: Rows that are reduced together; the pieces of one window merge later, however they were divided.
REDUCED_ROWS_MAX: Final = 50_000


class Reducer:
    """Reduces the records of one segment, some at a time and in order, to pieces."""

    def __init__(
        self,
        contents: Contents,
        window_ms: int,
        round_ms: float,
        groups: frozenset[str] = frozenset(),
    ) -> None:
        """What to reduce.

        Args:
            contents: of the segment, filled by whoever reads it.
            window_ms: length of a window.
            round_ms: length of a round.
            groups: the only ones whose pieces are made; none: all.
        """
        self._contents = contents
        self._continuity = Continuity(contents, round_ms)
        self._names = Series()
        self._groups = groups
        self._lengths = window_ms, round_ms

    def records(self, found: Iterable[Logged | Damage]) -> Iterator[Logged]:
        """The records among what is found; gaps between them are looked for on the way."""
        for item in found:
            if isinstance(item, Logged):
                self._continuity.note(item)
                yield item

    def pieces(self, records: Sequence[Logged]) -> Any:
        """A `pyarrow.Table` of `schema.PIECES` of some records, the next ones."""
        rows = rows_of(records, self._names)
        gaps, last = self._continuity.gaps, records[-1].offset
        # What is missing is missing of all groups.
        note_totals(rows, self._names, gaps)
        # Who cuts the log by days has read the next record by now.
        self._continuity.gaps = {at: gap for at, gap in gaps.items() if at > last}
        rows = self._names.only(self._groups, rows)
        return reduce_rows(rows, self._names, *self._lengths).combine_chunks()

    def stats(self) -> Stats:
        """The facts about the segment, when all of it was read."""
        known = self._continuity
        # Thousands of names for each segment, which only the pass for the clocks asks for.
        self._contents.groups.clear()
        seen = [(broker, low, at_ms) for (broker, low), at_ms in known.seen_ms.items()]
        return Stats(self._contents, known.runs, seen)


def segment_pieces(
    segment: Segment,
    window_ms: int,
    *,
    round_ms: float,
    clocks: Clocks = AS_STAMPED,
    asked: Asked = EVERYTHING,
    rows_max: int = REDUCED_ROWS_MAX,
) -> Iterator[Any]:
    """The pieces of one segment, as `pyarrow.RecordBatch`es of `schema.PIECES`, and last its `Stats`.

    Args:
        segment: where it is.
        window_ms: length of a window.
        round_ms: length of a round.
        clocks: what is known of the brokers' clocks.
        asked: leaves out other times and groups; tenants are not known here.
        rows_max: rows that are reduced together.
    """
    contents = Contents(segment.name)
    reducer = Reducer(contents, window_ms, round_ms, asked.groups)
    found = read_segment(segment, contents, asked.within, timed=clocks.time_of)
    for records in chunks(reducer.records(found), rows_max):
        yield from reducer.pieces(records).to_batches()
    yield reducer.stats()


def chunks(found: Iterable[Logged], rows_max: int) -> Iterator[list[Logged]]:
    """The records some at a time, of about so many rows."""
    records: list[Logged] = []
    rows = 0
    for logged in found:
        records.append(logged)
        rows += len(logged.record.rows)
        if rows >= rows_max:
            yield records
            records, rows = [], 0
    if records:
        yield records
