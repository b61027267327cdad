"""Reads usage logs: every entry in order, damage with its place, and where a time or an index is.

Law: nothing that is readable is left out and nothing is made up. What cannot be read comes as a
`DamagedEntry` with its place, and reading goes on behind it. The torn end of a log's last segment is not
damage: the daemon may be writing it just now. Reading takes what was there when each segment was opened,
needs no lock and changes nothing; a segment that retention removes meanwhile is left out.

Seeking reads no more of an entry than what the broker added: it searches the segments by their first
entries, then the sparse index, then walks at most from one mark to the next. Where a log begins or ends
without broker timestamps, nothing is in order but the entries themselves: it is searched from its
beginning by publish time. What a payload means is `rgd.wire.record`'s business, where segments are
`sources`'s.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rgd.adapters.usagelog.errors import SeveralLogs
from rgd.adapters.usagelog.sources import Source, folder_sources, logs_at
from rgd.storage.headers import Header, pread, read_found, size_of, walk
from rgd.storage.marks import Mark, true_marks
from rgd.wire.errors import WireError
from rgd.wire.frame import PEEK_SIZE, peek_broker_entry_metadata
from rgd.wire.segment import LENGTH_SIZE, Damaged, Stored, Torn


@dataclass(slots=True)
class LogEntry(Stored):
    """An entry and its position."""

    #: The name of its segment's source.
    path: str


@dataclass(frozen=True, slots=True)
class DamagedEntry(Damaged):
    """Damaged bytes: one entry or several."""

    path: str

    def __str__(self) -> str:
        return f"{self.path}: {self.size} damaged bytes at offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Position:
    """The position of an entry."""

    path: str
    offset: int
    #: None where the broker set none.
    index: int | None
    #: Milliseconds since 1970: the broker's, otherwise the producer's.
    timestamp: int
    #: Its index, counted from the segment's name where it carries none.
    counted: int


def read_entries(
    place: Path | str, *, start: Position | None = None
) -> Iterator[LogEntry | DamagedEntry]:
    """Everything in a log, in a folder or tier of logs (one after the other) or in one segment.

    Args:
        place: a folder, a segment file or a tier.
        start: begin here (`seek_time` in the same log) instead of at the beginning.

    Raises:
        LogNotFound: there is no such place.
        LogUnreadable, TierError: it cannot be read.
    """
    for sources in logs_at(place):
        yield from read_sources(sources, start=start)


def read_sources(
    sources: Sequence[Source], *, start: Position | None = None
) -> Iterator[LogEntry | DamagedEntry]:
    """Everything in the segments of one log."""
    names = [source.name for source in sources]
    begin = offset = 0
    if start is not None and start.path in names:
        begin, offset = names.index(start.path), start.offset
    for source in sources[begin:]:
        yield from read_segment(source, offset)
        offset = 0


def read_segment(source: Source, offset: int = 0) -> Iterator[LogEntry | DamagedEntry]:
    """Everything in one segment from an offset on, where a length is."""
    # Asked before reading: it may be closed meanwhile.
    may_grow = source.may_grow()
    with source.open() as opened:
        for found in read_found(opened, offset):
            if isinstance(found, Stored):
                yield LogEntry(found.offset, found.data, found.entry, source.name)
            elif not (may_grow and isinstance(found, Torn)):
                yield DamagedEntry(found.offset, found.size, found.reason, source.name)


def seek_time(place: Path | str, timestamp_ms: int) -> Position | None:
    """The first entry at or after a time, in one log or one segment; None: there is none.

    Raises:
        LogNotFound: there is no such place.
        SeveralLogs: it holds more than one.
        LogUnreadable, TierError: it cannot be read.
    """
    return seek_time_in(_one_log(place), timestamp_ms)


def seek_index(place: Path | str, index: int) -> Position | None:
    """The first entry with at least an index, in one log or one segment; None: there is none.

    Raises:
        LogNotFound: there is no such place.
        SeveralLogs: it holds more than one.
        LogUnreadable, TierError: it cannot be read.
    """
    return seek_index_in(_one_log(place), index)


def seek_time_in(sources: Sequence[Source], timestamp_ms: int) -> Position | None:
    """`seek_time` in the segments of one log."""

    def seek(source: Source) -> Position | None:
        return _seek(
            source,
            lambda header, _: header.timestamp >= timestamp_ms,
            lambda mark: mark.timestamp < timestamp_ms,
        )

    if not all(_is_stamped(source) for source in (*sources[:1], *sources[-1:])):
        return next((found for source in sources if (found := seek(source)) is not None), None)
    following = bisect_left(sources, float(timestamp_ms), key=_first_timestamp)
    # The sought entry may still be in the segment before the first that starts late enough.
    later = sources[max(following - 1, 0) :]
    return next((found for source in later if (found := seek(source)) is not None), None)


def seek_index_in(sources: Sequence[Source], index: int) -> Position | None:
    """`seek_index` in the segments of one log."""
    firsts = [source.first_index or 0 for source in sources]
    begin = max(bisect_right(firsts, index) - 1, 0)
    for source in sources[begin:]:
        found = _seek(source, lambda _, own: own >= index, lambda mark: mark.index <= index)
        if found is not None:
            return found
    return None


def _one_log(place: Path | str) -> Sequence[Source]:
    """The segments of one log."""
    path = Path(place)
    if "://" not in str(place) and path.is_dir() and (own := folder_sources(path)):
        return own
    logs = [sources for sources in logs_at(place) if sources]
    if len(logs) > 1:
        raise SeveralLogs(place, [sources[0].name.rpartition("/")[0] for sources in logs])
    return logs[0] if logs else []


def _seek(
    source: Source, is_found: Callable[[Header, int], bool], is_before: Callable[[Mark], bool]
) -> Position | None:
    """The first entry for which `is_found` holds, given its header and its index, counted where it has none."""
    with source.open() as opened:
        loaded = source.marks()
        earlier = loaded[: bisect_left(loaded, x=True, key=lambda mark: not is_before(mark))]
        marks = true_marks(opened, earlier)
        counted = marks[-1].index if marks else source.first_index or 0
        for header in walk(opened, marks[-1].offset if marks else 0):
            index = counted if header.index is None else header.index
            counted = index + 1
            if is_found(header, index):
                return Position(source.name, header.offset, header.index, header.timestamp, index)
    return None


def _first_timestamp(source: Source) -> float:
    """When the first entry was written; a segment without entries counts as written last."""
    if source.first_ms is not None:
        return source.first_ms
    with source.open() as opened:
        first = next(walk(opened), None)
    return math.inf if first is None else first.timestamp


def _is_stamped(source: Source) -> bool:
    """Whether the broker stamped the first entry; a segment without a readable one counts as stamped."""
    with source.open() as opened:
        if not size_of(opened):
            return True
        try:
            broker = peek_broker_entry_metadata(pread(opened, PEEK_SIZE, LENGTH_SIZE))
        except WireError:
            return True
    return broker is not None and broker.broker_timestamp is not None
