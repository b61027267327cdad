"""Segment files on disk: finding them, and reading the records of one.

Law: reading ends for any content. Each stretch that is not a record is reported (`Damage`) or
counted (entries of other producers, an incomplete end), is never fatal, and everything else is still read.

A path is a log folder (searched with its subfolders) or one segment file. A time range is
searched by the brokers' timestamps before the entries, without reading earlier entries. It
ends at the first later entry, because broker time never runs backwards within a log.
The report reads with `timed`, which corrects the time of each record (`rgd.analysis.clocks`).
`rgd.wire.segment` has the format of a file; `continuity` interprets gaps.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Final

from rgd.analysis.asked import ALWAYS, TimeRange
from rgd.analysis.errors import NoLog
from rgd.analysis.explained import note_policies
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.errors import WireError
from rgd.wire.frame import PEEK_SIZE, Entry, peek_broker_entry_metadata
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import CONTEXT_ENTRIES, LogReader
from rgd.wire.record import header_of
from rgd.wire.segment import LENGTH_SIZE, Damaged, SegmentReader, Stored, Torn, decode_length

#: How much of a file is read at a time, in bytes.
READ_SIZE: Final = 1024 * 1024

#: Stretches of damage that one segment lists; more are counted only.
DAMAGES_LISTED_MAX: Final = 20

_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Logged:
    """A record, and where and when it was logged."""

    #: Of its entry, in bytes from the start of the segment.
    offset: int
    index: int | None
    #: ms since 1970: the broker's time, else the producer's.
    timestamp_ms: int
    record: RoundRecord
    #: What the broker's wall clock said, ms since 1970: unlike `timestamp_ms` it may run backwards.
    clock_ms: int = 0


#: From an entry and its record to the record's time, ms since 1970.
Timed = Callable[[Entry, RoundRecord], int]


def as_stamped(entry: Entry, _record: RoundRecord) -> int:
    """The broker's timestamp, else the producer's."""
    return entry.timestamp


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged stretch of a segment."""

    offset: int
    #: In bytes.
    size: int
    reason: str


@dataclass(slots=True)
class Contents:
    """The contents of a segment; filled while it is read."""

    segment: str
    records: int = 0
    rows: int = 0
    #: Requests that were granted, and refused, because a broker knew no policies.
    unknown_granted: int = 0
    unknown_refused: int = 0
    #: Entries of policies, and what they attach (`rgd.analysis.explained`).
    policies: int = 0
    attached: dict[str, set[str]] = field(default_factory=dict)
    #: Complete entries of other producers.
    foreign: int = 0
    #: Stretches of damage, and their bytes.
    damaged: int = 0
    damaged_bytes: int = 0
    damages: list[tuple[int, str]] = field(default_factory=list)
    #: Bytes of an incomplete entry at the end.
    torn_bytes: int = 0
    first_index: int | None = None
    last_index: int | None = None
    #: Entries that are missing according to the indexes.
    lost_entries: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def note_entry(self, entry: Entry) -> None:
        """Count a complete entry of any producer."""
        if entry.index is None:
            return
        if self.last_index is not None and entry.index > self.last_index + 1:
            self.lost_entries += entry.index - self.last_index - 1
        if self.first_index is None:
            self.first_index = entry.index
        self.last_index = entry.index

    def note_record(self, logged: Logged) -> None:
        """Count a record; of a round in parts the first one."""
        self.records += logged.record.part == 1
        self.rows += len(logged.record.rows)
        self.unknown_granted += logged.record.unknown_granted
        self.unknown_refused += logged.record.unknown_refused
        if self.first_ms is None:
            self.first_ms = logged.timestamp_ms
        self.last_ms = logged.timestamp_ms

    def note_damage(self, damage: Damage) -> None:
        """Count an unreadable stretch."""
        self.damaged += 1
        self.damaged_bytes += damage.size
        if len(self.damages) < DAMAGES_LISTED_MAX:
            self.damages.append((damage.offset, damage.reason))


def find_segments(paths: Sequence[str]) -> tuple[Path, ...]:
    """Every segment file of some folders and files, each once, logs together and in order.

    Raises:
        NoLog: a path is not there, cannot be read, or holds no segment.
    """
    if not paths:
        raise NoLog("no log was named; give the folders that the daemons log to (`log.dir`)")
    found = {segment.resolve() for path in paths for segment in _segments_of(path)}
    return tuple(sorted(found))


def _segments_of(path: str) -> list[Path]:
    if _URL.match(path):
        raise NoLog(f"{path} is a URL; give a log folder or a segment file")
    place = Path(path)
    try:
        if place.is_file():
            with place.open("rb"):
                return [place]
        if not place.is_dir():
            raise NoLog(f"{path} does not exist; give a log folder or a segment file")
        found = [file for file in place.rglob("*.log") if _SEGMENT_NAME.fullmatch(file.name)]
        for file in found:
            with file.open("rb"):
                pass
    except OSError as exc:
        raise NoLog(f"{path} cannot be read: {exc.strerror or exc}") from exc
    if not found:
        raise NoLog(
            f"{path} holds no segment files (20 digits and .log); give the folder that a daemon "
            "logs to (`log.dir`), or one above it"
        )
    return found


def segments_within(segments: Sequence[Path], within: TimeRange) -> list[Path]:
    """The segments that may hold entries of a time range, of those that `find_segments` found."""
    followed = zip_longest(segments, segments[1:])
    return [
        segment
        for segment, following in followed
        if _overlaps(segment, _same_log(segment, following), within)
    ]


def _same_log(segment: Path, following: Path | None) -> Path | None:
    """The next segment, if it is of the same log."""
    return following if following is not None and following.parent == segment.parent else None


def _overlaps(segment: Path, following: Path | None, within: TimeRange) -> bool:
    """Whether a segment may hold entries of a time range; looks at two first entries only.

    Args:
        segment: the segment asked about.
        following: the next segment of the same log, if there is one.
        within: the range.
    """
    first = first_timestamp(segment)
    if first is not None and within.is_over(first):
        return False
    if within.from_ms is None or following is None:
        return True
    next_first = first_timestamp(following)
    return next_first is None or next_first >= within.from_ms


def first_timestamp(segment: Path) -> int | None:
    """The broker's timestamp of a segment's first entry; None where that is unknown."""
    with segment.open("rb") as file:
        return _peek(file)[1]


def read_segment(
    segment: Path,
    contents: Contents,
    within: TimeRange = ALWAYS,
    *,
    timed: Timed = as_stamped,
    has_rows: bool = True,
) -> Iterator[Logged | Damage]:
    """The records and the damage of one segment in order.

    Args:
        segment: the file.
        contents: fills while it is read.
        within: leave out what is stamped outside of this.
        timed: returns the time of a record.
        has_rows: False: leave out the rows of the records, which is many times faster.
    """
    with segment.open("rb") as file:
        context, start = _seek(file, within)
        decode = LogReader().read if has_rows else header_of
        read = _Reading(contents, within, start, timed, decode)
        file.seek(context)
        reader = SegmentReader(context)
        while data := file.read(READ_SIZE):
            for found in reader.feed(data):
                if isinstance(found, Stored) and within.is_over(found.entry.timestamp):
                    return
                yield from read.found(found)
        for found in reader.finish():
            yield from read.found(found)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How one segment is read."""

    contents: Contents
    within: TimeRange
    #: Where the range begins; what lies before is only looked at for what is continued.
    start: int
    timed: Timed
    decode: Callable[[Entry], RoundRecord | PolicyPart | None]

    def found(self, found: Stored | Damaged | Torn) -> Iterator[Logged | Damage]:
        """Count what was found; the record or the damage, if it is one."""
        if isinstance(found, Torn):
            self.contents.torn_bytes += found.size
        elif isinstance(found, Stored):
            yield from self._entry(found)
        elif found.offset >= self.start:
            yield self._damage(Damage(found.offset, found.size, found.reason.value))

    def _entry(self, found: Stored) -> Iterator[Logged | Damage]:
        entry = found.entry
        if not self.within.holds(entry.timestamp):
            # Later records continue this one.
            with suppress(WireError):
                self.decode(entry)
            return
        self.contents.note_entry(entry)
        try:
            record = self.decode(entry)
        except WireError as error:
            size = LENGTH_SIZE + len(found.data)
            yield self._damage(Damage(found.offset, size, error.reason.value))
            return
        if record is None:
            self.contents.foreign += 1
            return
        if isinstance(record, PolicyPart):
            self.contents.policies += 1
            note_policies(record, self.contents.attached)
            return
        at_ms = self.timed(entry, record)
        logged = Logged(found.offset, entry.index, at_ms, record, entry.publish_time)
        self.contents.note_record(logged)
        yield logged

    def _damage(self, damage: Damage) -> Damage:
        self.contents.note_damage(damage)
        return damage


def _seek(file: BinaryIO, within: TimeRange) -> tuple[int, int]:
    """Where to begin to read, and where the range begins: its first entry, or one of unknown time.

    Between them are as many entries as a record may continue.
    """
    offset = 0
    if within.from_ms is None:
        return offset, offset
    context = deque([offset], maxlen=CONTEXT_ENTRIES + 1)
    while True:
        file.seek(offset)
        length, timestamp = _peek(file)
        if timestamp is None or timestamp >= within.from_ms:
            return context[0], offset
        offset += LENGTH_SIZE + length
        context.append(offset)


def _peek(file: BinaryIO) -> tuple[int, int | None]:
    """The length of the entry here, and the broker's timestamp; None where that is unknown."""
    head = file.read(LENGTH_SIZE + PEEK_SIZE)
    try:
        length = decode_length(head[:LENGTH_SIZE])
        broker = peek_broker_entry_metadata(head[LENGTH_SIZE:][:length])
    except WireError:
        return 0, None
    return length, None if broker is None else broker.broker_timestamp
