"""Checks whether logs are what was written: every byte is read once, a tier's once more against its manifest.

Law: every fault is one line with its place, and checking goes on behind it, also behind a segment that cannot
be read. Nothing that is sound is a fault. What cannot be checked is said (`Note`).

Where the broker added an index to an entry, the index proves that nothing is missing, double or in another order.
Without it, entries are counted from the segment's name: the next segment's name, or the manifest, has to
agree with the count, and the producer's sequence ids have to rise.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rgd.adapters.usagelog.reader import DamagedEntry, LogEntry, read_segment
from rgd.adapters.usagelog.sources import FileSource, Source, TierSource, logs_at
from rgd.errors import RgdError
from rgd.storage.errors import TierDamaged


class Fault(str):
    """Something that is not what was written."""

    __slots__ = ()


class Note(str):
    """Something that cannot be checked."""

    __slots__ = ()


Finding = Fault | Note


@dataclass(slots=True)
class _Line:
    """What a log's next entry has to follow."""

    #: Index of the next entry; None: how many entries came before is not known.
    expected: int | None = None
    #: It is at least this.
    least: int = 0
    timestamp: int = 0
    #: The producer of the last entry, and its sequence id.
    producer: str | None = None
    sequence_id: int = -1
    #: Entries to which the broker added no index, or no time.
    unindexed: int = 0
    unstamped: int = 0


class Verification:
    """A check of all logs at a place."""

    def __init__(self, place: str) -> None:
        """List what is there.

        Raises:
            LogNotFound, LogUnreadable, TierError, OSError: it cannot be listed.
        """
        self.segments = 0
        self.entries = 0
        self.faults = 0
        self._listed: list[Fault] = []
        self._logs = list(logs_at(place, lambda error: self._listed.append(Fault(str(error)))))
        #: Bytes of all segments.
        self.size = sum(_size(source) for sources in self._logs for source in sources)

    def findings(self, done: Callable[[int], None]) -> Iterator[Finding]:
        """What is wrong, and what cannot be checked.

        Args:
            done: receives the bytes of each segment once it is checked.
        """
        for found in self._all(done):
            self.faults += isinstance(found, Fault)
            yield found

    def _all(self, done: Callable[[int], None]) -> Iterator[Finding]:
        yield from self._listed
        for sources in self._logs:
            line = _Line()
            for number, source in enumerate(sources):
                self.segments += 1
                if number == 0:
                    line.expected = source.first_index
                try:
                    yield from self._segment(source, line)
                except (RgdError, OSError) as error:
                    yield Fault(str(error))
                    line.expected = None
                done(_size(source))
            yield from _notes(sources, line)

    def _segment(self, source: Source, line: _Line) -> Iterator[Finding]:
        yield from _begin(source, line)
        if isinstance(source, TierSource):
            try:
                source.tier.verify(source.segment)
            except TierDamaged as error:
                yield Fault(str(error))
        first_ms = None
        before = self.entries
        for found in read_segment(source):
            if isinstance(found, DamagedEntry):
                yield Fault(str(found))
                line.expected = None
                continue
            self.entries += 1
            first_ms = found.entry.timestamp if first_ms is None else first_ms
            yield from _entry(found, line)
        if self.entries == before and isinstance(source, FileSource) and not source.path.exists():
            # Retention deleted it meanwhile.
            line.expected = None
        if isinstance(source, TierSource):
            yield from _end(source, line, first_ms)


def _begin(source: Source, line: _Line) -> Iterator[Finding]:
    """A segment's name against what came before it."""
    first = source.first_index
    if first is None:
        line.expected = None
        return
    least = line.least if line.expected is None else line.expected
    if line.expected is not None and first > line.expected:
        missing = first - line.expected
        yield Fault(
            f"{source.name}: expected the index {line.expected}, got {first}: {missing:,} entries are missing"
        )
    elif first < least:
        yield Fault(f"{source.name}: expected the index {least}, got {first}: entries are double")
    line.expected = line.least = first


def _entry(found: LogEntry, line: _Line) -> Iterator[Finding]:
    at = f"{found.path}: entry at offset {found.offset}"
    entry = found.entry
    line.least += 1
    if entry.index is None:
        line.unindexed += 1
        if line.expected is not None:
            line.expected += 1
        if entry.producer_name == line.producer and entry.sequence_id <= line.sequence_id:
            yield Fault(
                f"{at}: expected a sequence id above {line.sequence_id}, got {entry.sequence_id}: entries are "
                "double or in another order"
            )
    else:
        if line.expected is not None and entry.index != line.expected:
            yield Fault(f"{at}: expected the index {line.expected}, got {entry.index}")
        line.expected = line.least = entry.index + 1
    line.producer, line.sequence_id = entry.producer_name, entry.sequence_id
    stamped = entry.broker_timestamp
    if stamped is None:
        line.unstamped += 1
        return
    if stamped < line.timestamp:
        yield Fault(f"{at}: its broker timestamp {stamped} is before {line.timestamp}")
    line.timestamp = max(line.timestamp, stamped)


def _end(source: TierSource, line: _Line, first_ms: int | None) -> Iterator[Finding]:
    """A segment's entries against its manifest."""
    told = source.segment
    if line.expected is not None and line.expected != told.last_index + 1:
        yield Fault(
            f"{source.name}: expected the index {told.last_index} at its end, as its manifest says, got "
            f"{line.expected - 1}"
        )
        line.expected = told.last_index + 1
    if first_ms is not None and first_ms != told.first_ms:
        yield Fault(
            f"{source.name}: expected its first entry at {told.first_ms} ms, as its manifest says, got {first_ms}"
        )


def _notes(sources: list[Source], line: _Line) -> Iterator[Note]:
    log = sources[-1].name if sources else ""
    if line.unindexed:
        yield Note(
            f"{log}: {line.unindexed:,} entries of this log have no index, so they were counted from the "
            "segments' names; entries missing at the log's end cannot be found"
        )
    if line.unstamped:
        yield Note(
            f"{log}: {line.unstamped:,} entries of this log have no broker timestamp, so the order of their "
            "times was not compared"
        )


def _size(source: Source) -> int:
    if isinstance(source, TierSource):
        return source.segment.size
    with contextlib.suppress(OSError):
        return source.path.stat().st_size if isinstance(source, FileSource) else 0
    return 0
