"""Reading the usage log of a running daemon: what is on disk by one thread, what needs the tier by another.

Law: an answer that the disk alone can give never waits for the tier. A tier that hangs costs its readers
`TIER_WAIT_S` each, and nobody else anything. Entries in the tier and on disk are one log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.errors import SegmentMoved
from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.reader import (
    DamagedEntry,
    LogEntry,
    read_sources,
    seek_index_in,
    seek_time_in,
)
from rgd.adapters.usagelog.sources import FileSource, Source, TierSource
from rgd.adapters.usagelog.tiering import Uploader
from rgd.app.call_threads import CallThread
from rgd.errors import RgdError
from rgd.ports.log_door import ENTRIES_BYTES_MAX, BrokerMetadataView, EntriesView, EntryView, From
from rgd.wire.frame import headers_and_payload

#: Reads that wait for each thread; more are refused.
READS_WAITING_MAX: Final = 16
#: How long a reader waits for the disk, and for the tier, its turn included.
DISK_WAIT_S: Final = 30.0
TIER_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Which log it is."""

    folder: Path
    #: `log.name`, the label `topic`.
    name: str
    #: The label `partition`.
    broker: str
    #: `log.exposingBrokerEntryMetadataToClientEnabled`.
    exposes_metadata: bool = False


class LogReading:
    """Pages of one log."""

    def __init__(
        self, place: LogPlace, uploader: Uploader | None, next_index: Callable[[], int]
    ) -> None:
        self._place = place
        self._uploader = uploader
        self._next_index = next_index
        #: Reads of the tier that failed, or took too long.
        self.tier_errors = 0
        self._disk = CallThread(
            "reads of the usage log", timeout_s=DISK_WAIT_S, waiting_max=READS_WAITING_MAX
        )
        self._tier = CallThread(
            "reads of the usage log's tier", timeout_s=TIER_WAIT_S, waiting_max=READS_WAITING_MAX
        )

    async def entries(self, start: From, limit: int) -> EntriesView:
        """Entries from a position on, oldest first.

        Raises:
            UsageLogError, TierError, Unavailable: they cannot be read now.
        """
        found = await self._disk.call(lambda: self._read_disk(start, limit))
        if found is not None:
            return found
        try:
            return await self._tier.call(lambda: self._read_all(start, limit))
        except RgdError:
            self.tier_errors += 1
            raise

    def drain(self) -> None:
        """Read the tier no more. Idempotent."""
        self._tier.close()

    def close(self) -> None:
        """Read no more. Idempotent."""
        self._disk.close()
        self._tier.close()

    # In those threads.

    def _read_disk(self, start: From, limit: int) -> EntriesView | None:
        """What the disk alone can answer; None: the tier has to be asked."""
        end = self._next_index()
        files = self._files()
        if self._uploader is None:
            return self._read(files, start, limit, end)
        with suppress(SegmentMoved):
            if self._is_on_disk(files, start):
                return self._read(files, start, limit, end)
        return None

    def _read_all(self, start: From, limit: int) -> EntriesView:
        """What the tier and the disk hold; once more, where a segment moved meanwhile."""
        end = self._next_index()
        with suppress(SegmentMoved):
            return self._read(self._sources(), start, limit, end)
        return self._read(self._sources(), start, limit, end)

    def _files(self) -> list[FileSource]:
        segments = list_segments(self._place.folder)
        return [FileSource(one.path, may_move=self._uploader is not None) for one in segments]

    def _is_on_disk(self, files: Sequence[FileSource], start: From) -> bool:
        """Whether nothing from `start` on is in the tier alone."""
        assert self._uploader is not None
        state = self._uploader.state
        first = files[0].first_index if files else None
        in_tier = [one for one in state.segments if first is None or one.first_index < first]
        if not in_tier:
            return True
        if start.time_ms is None:
            return start.index > in_tier[-1].last_index
        # Times never run backwards within the log, so what is on disk is later than what is in the tier.
        return in_tier[-1].last_ms < start.time_ms

    def _sources(self) -> list[Source]:
        """The segments, in the tier and on disk; what is on disk is read there."""
        files = self._files()
        on_disk = {file.first_index for file in files}
        assert self._uploader is not None
        tier = self._uploader.tier_to_read()
        # Asked after the folder: what left the disk before is there.
        remote = [
            TierSource(tier, segment)
            for segment in self._uploader.state.segments
            if segment.first_index not in on_disk
        ]
        return sorted((*remote, *files), key=lambda source: source.first_index or 0)

    def _read(self, sources: Sequence[Source], start: From, limit: int, end: int) -> EntriesView:
        """A page; `end` was the log's next index before `sources` were listed: later entries may be missed."""
        position = (
            seek_index_in(sources, start.index)
            if start.time_ms is None
            else seek_time_in(sources, start.time_ms)
        )
        if position is None:
            return EntriesView((), max(start.index, end))
        entries: list[EntryView] = []
        index = first = position.counted
        firsts = {source.name: source.first_index or 0 for source in sources}
        damaged = size = 0
        more = False
        for found in read_sources(sources, start=position):
            if isinstance(found, DamagedEntry):
                damaged += 1
                continue
            if len(entries) == limit or size >= ENTRIES_BYTES_MAX:
                more = True
                break
            # Without an index it is counted from its segment's name, as `seek_index_in` does.
            index = max(index, firsts[found.path])
            own = found.entry.index
            index = (index if own is None else own) + 1
            size += len(found.data)
            entries.append(self._shown(found))
        passed = max(0, first - start.index) if start.time_ms is None else 0
        return EntriesView(tuple(entries), index, more, passed, damaged)

    def _shown(self, found: LogEntry) -> EntryView:
        metadata = None
        broker = found.entry.broker
        if self._place.exposes_metadata and broker is not None:
            metadata = BrokerMetadataView(broker.broker_timestamp, broker.index)
        return EntryView(headers_and_payload(found.data), metadata)
