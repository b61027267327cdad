"""Reads the records of one segment.

Law: reading ends for any content. Each stretch that is not a record is reported (`Damage`) or
counted (entries of other producers, an incomplete end), is never fatal, and everything else is still read.

Of a range, by the brokers' timestamps or indexes, the sparse index gives the first and the last offset; nothing
behind the last is read. It ends at the second later entry in a row, because neither runs backwards within a log, and one
may be damaged: no checksum covers them. An entry without an index has the next one of the entry before it, as for the daemon.
The report reads with `timed`, which corrects the time of each record (`rgd.analysis.clocks`).
`rgd.wire.segment` has the format of a segment; `discovery` finds them; `continuity` interprets gaps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from rgd.analysis.asked import ALWAYS, IndexRange, TimeRange
from rgd.analysis.discovery import Segment
from rgd.analysis.tenants import note_policies
from rgd.storage.headers import read_found
from rgd.storage.marks import Mark, is_true
from rgd.storage.ranges import BLOCK_BYTES, Ranges
from rgd.wire.errors import Reason, WireError
from rgd.wire.frame import Entry
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import CONTEXT_ENTRIES, Answer, LogReader
from rgd.wire.record import LoggedRound
from rgd.wire.segment import LENGTH_SIZE, Damaged, Found, SegmentReader, Stored, Torn

#: ms since 1970, in the year 6429; what is stamped later is damaged: calendars and 64 bits end somewhere behind it.
TIME_MS_MAX: Final = 1 << 47

#: Stretches of damage that one segment lists; more are counted only.
DAMAGES_LISTED_MAX: Final = 20


@dataclass(slots=True)
class Logged:
    """A record, and where and when it was logged."""

    #: Of its entry, in bytes from the start of the segment.
    offset: int
    index: int | None
    #: ms since 1970: the broker's time, else the producer's.
    timestamp_ms: int
    record: LoggedRound
    #: What the broker's wall clock said, ms since 1970: unlike `timestamp_ms` it may run backwards.
    clock_ms: int = 0


#: From an entry and its record to the record's time, ms since 1970.
Timed = Callable[[Entry, LoggedRound], int]


#: What there is in a segment and its index, with the entry that it is.
_Items = Iterator[tuple[tuple[Found, int], Entry | None]]


#: Receives an entry of policies.
OnPolicies = Callable[[Entry, PolicyPart], None]


def as_stamped(entry: Entry, _record: LoggedRound) -> int:
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
    #: Groups with rows.
    groups: set[str] = field(default_factory=set)
    #: Entries of policies, and the groups with whom they attach to them (`rgd.analysis.tenants`).
    policies: int = 0
    attached: set[tuple[str, str]] = field(default_factory=set)
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

    @property
    def has_entries(self) -> bool:
        """Whether any could be read."""
        return any((self.records, self.rows, self.policies, self.foreign))

    def note_entry(self, entry: Entry) -> None:
        """Count a complete entry of any producer."""
        index = entry.index
        if index is None:
            return
        if self.last_index is not None and index > self.last_index + 1:
            self.lost_entries += index - self.last_index - 1
        if self.first_index is None:
            self.first_index = index
        self.last_index = index

    def note_record(self, logged: Logged) -> None:
        """Count a record; of a round in parts the first one."""
        self.records += logged.record.part == 1
        self.rows += len(logged.record.rows)
        self.unknown_granted += logged.record.unknown_granted
        self.unknown_refused += logged.record.unknown_refused
        if self.first_ms is None:
            self.first_ms = logged.timestamp_ms
        self.last_ms = logged.timestamp_ms

    def noted(self, held: list[Damage]) -> Iterator[Damage]:
        """Count unreadable stretches, and let go of them."""
        while held:
            self.note_damage(held[0])
            yield held.pop(0)

    def note_damage(self, damage: Damage) -> None:
        """Count an unreadable stretch."""
        self.damaged += 1
        self.damaged_bytes += damage.size
        if len(self.damages) < DAMAGES_LISTED_MAX:
            self.damages.append((damage.offset, damage.reason))


def read_segment(
    segment: Segment,
    contents: Contents,
    within: TimeRange | IndexRange = ALWAYS,
    *,
    timed: Timed = as_stamped,
    only_headers: Callable[[int], bool] | None = None,
    on_policies: OnPolicies | None = None,
) -> Iterator[Logged | Damage]:
    """The records and the damage of one segment in order.

    Args:
        segment: where it is.
        contents: fills while it is read.
        within: leave out what lies outside of this.
        timed: returns the time of a record.
        only_headers: leave out the rows, and records without a sequence, of their own or of a peer, for which this is true;
            then only damage is counted.
        on_policies: receives the entries of policies.
    """
    source = segment.ranges()
    start, end = (0, None) if within == ALWAYS else _bounds(source, segment.marks(), within)
    if only_headers is None and isinstance(within, TimeRange) and within.from_ms is not None:
        _note_head(source, contents)
    #: Damage of which it is not known yet whether it is in the range.
    held: list[Damage] = []
    is_begun = False
    #: How many of these came before a first later entry, behind which the range may have ended.
    ended: int | None = None
    first = segment.first_index if isinstance(within, IndexRange) else 0
    entries = _entries(read_found(source, start, end), within, first)
    read = LogReader().read_all(entries, headers=only_headers, names=contents.groups)
    for (found, index), record in read:
        if isinstance(found, Torn):
            contents.torn_bytes += found.size
        elif isinstance(found, Damaged):
            held.append(Damage(found.offset, found.size, found.reason.value))
        elif within.begins_after(found.entry.timestamp, index):
            held = held if is_begun else []
        elif within.ends_before(found.entry.timestamp, index):
            ended = len(held)
        else:
            is_begun, ended = True, None
            yield from contents.noted(held)
            logged = _noted(contents, found, record, timed, on_policies)
            if logged is not None:
                yield logged
    if within.has_tail:
        yield from contents.noted(held[:ended])


def _entries(found: Iterator[Found], within: TimeRange | IndexRange, following: int) -> _Items:
    """What there is before the end of the range, with the entries among it: records continue those before the range.

    An entry without an index has the one that follows.
    """
    is_over = False
    for one in found:
        entry, index = one.entry if isinstance(one, Stored) else None, following
        if entry is not None:
            index = following if entry.index is None else entry.index
            following = index + 1
            was_over, is_over = is_over, within.ends_before(entry.timestamp, index)
            if was_over and is_over:
                return
        yield (one, index), entry


def _note_head(source: Ranges, contents: Contents) -> None:
    """Note what the policies attach with which every segment begins, though they are older than the range."""
    reader, decode, offset = SegmentReader(0), LogReader().read, 0
    while data := source.read(BLOCK_BYTES, offset):
        offset += len(data)
        for found in reader.feed(data):
            try:
                record = decode(found.entry) if isinstance(found, Stored) else None
            except WireError:
                return
            if not isinstance(record, PolicyPart):
                return
            note_policies(record, contents.attached)


def _bounds(
    source: Ranges, marks: list[Mark], within: TimeRange | IndexRange
) -> tuple[int, int | None]:
    """From where to where a segment is read for a range, as true marks of its sparse index say.

    It begins as many entries before the range as a record may continue.
    """
    early = [mark for mark in marks if within.begins_after(mark.timestamp, mark.index)]
    far = [mark for mark in early if mark.index + CONTEXT_ENTRIES <= early[-1].index + 1][-1:]
    over = [mark for mark in marks if within.ends_before(mark.timestamp, mark.index)][:1]
    # The last early one shows that the range begins behind it.
    begins = far if all(is_true(source, mark) for mark in (*far, *early[-1:] * len(far))) else []
    ends = [mark for mark in over if is_true(source, mark)]
    return begins[0].offset if begins else 0, ends[0].offset if ends else None


def _noted(
    contents: Contents, found: Stored, record: Answer, timed: Timed, on_policies: OnPolicies | None
) -> Logged | Damage | None:
    """Count an entry, and what it holds; the record or the damage, if it is one."""
    entry = found.entry
    contents.note_entry(entry)
    if record is None:
        contents.foreign += 1
        return None
    is_timeless = max(entry.timestamp, entry.publish_time) > TIME_MS_MAX
    if is_timeless or isinstance(record, WireError):
        reason = record.reason if isinstance(record, WireError) else Reason.BAD_NUMBER
        damage = Damage(found.offset, LENGTH_SIZE + len(found.data), reason.value)
        contents.note_damage(damage)
        return damage
    if isinstance(record, PolicyPart):
        contents.policies += 1
        note_policies(record, contents.attached)
        if on_policies is not None:
            on_policies(entry, record)
        return None
    logged = Logged(found.offset, entry.index, timed(entry, record), record, entry.publish_time)
    contents.note_record(logged)
    return logged
