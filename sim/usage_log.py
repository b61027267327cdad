"""Usage logs as the daemons would have written them, out of what the members appended.

Law: `rgd log` and `rgd report` read them as any other: DIR/<broker>/<first index>.log, entries with
broker timestamp and continuous indexes, in segments that roll by size and age. Times are the world's, from a fixed
day on, so the same run writes the same bytes. Where a scenario has wrong wall clocks (`Deed.CLOCK`), the
broker's clock says so, and the broker timestamp never runs backwards, as in the daemon's writer.

The daemon's writer (`rgd.adapters.usagelog`) is an adapter with threads and syncing, which a
simulator may not import: the bytes themselves come from `rgd.wire`, as its do.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from rgd.core.exchange.messages import Loggable
from rgd.core.units import NS_PER_MS
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.log_records import Item, LogEncoder
from rgd.wire.segment import encode_stored, segment_name
from sim.cluster import Cluster
from sim.fault import Fault
from sim.member import Member

#: When every world begins: 2026-01-01T00:00:00Z, in milliseconds since 1970.
EPOCH_MS: Final = 1_767_225_600_000

#: The daemon's defaults.
SEGMENT_BYTES: Final = 64 << 20
SEGMENT_AGE_MS: Final = 3_600_000


def write_usage_logs(cluster: Cluster, folder: Path) -> int:
    """Write the logs of all members, those that crashed included; how many entries.

    Raises:
        OSError: a file cannot be written.
        FileExistsError: there is a log already.
    """
    count = 0
    for place, name in enumerate(cluster.names):
        members = [one for one in (*cluster.gone, *cluster.members) if one and one.name == name]
        clock = partial(_clock_ms, cluster.clock_faults, place)
        count += _write_log(folder / quote(name, safe=""), name, members, clock)
    return count


def _clock_ms(faults: Sequence[Fault], place: int, at_ns: int) -> int:
    """What the wall clock of a place says, in ms since 1970."""
    ahead_ns = sum(fault.clock_ahead_ns(place, at_ns) for fault in faults)
    return EPOCH_MS + (at_ns + ahead_ns) // NS_PER_MS


def _write_log(
    folder: Path, broker: str, members: list[Member], clock_ms: Callable[[int], int]
) -> int:
    writer = SegmentWriter(folder, broker)
    for member in members:
        for record, at_ns in zip(member.records, member.recorded_at, strict=True):
            writer.append(record, clock_ms(at_ns))
        # The next member of the name is another process, which continues nothing.
        writer.encoder = LogEncoder()
    writer.close()
    return writer.index


class SegmentWriter:
    """Writes one broker's log as the daemon would, without its thread and its syncing."""

    def __init__(
        self,
        folder: Path,
        broker: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        segment_age_ms: int = SEGMENT_AGE_MS,
    ) -> None:
        """Make the folder.

        Raises:
            OSError: it cannot be made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.encoder = LogEncoder()
        #: Of the next entry.
        self.index = 0
        self._folder = folder
        self._broker = broker
        self._segment_bytes = segment_bytes
        self._segment_age_ms = segment_age_ms
        self._stamp = self._first_stamp = self._size = 0
        self._file: BinaryIO | None = None

    def append(self, logged: Loggable, told_ms: int) -> None:
        """Write what a daemon logged when its wall clock said `told_ms`.

        Raises:
            OSError: it cannot be written.
            FileExistsError: there is a log already.
        """
        self._stamp = max(self._stamp, told_ms)
        for item in self.encoder.items_of(logged, has_segment=self._file is not None):
            is_old = self._stamp - self._first_stamp >= self._segment_age_ms
            data = self._entry(item, told_ms)
            if self._file is None or is_old or self._size + len(data) > self._segment_bytes:
                self._roll(told_ms)
                data = self._entry(item, told_ms)
            self._write(data)

    def close(self) -> None:
        """Write no more. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _roll(self, told_ms: int) -> None:
        self.close()
        self._file = (self._folder / segment_name(self.index)).open("xb")
        self._first_stamp, self._size = self._stamp, 0
        for item in self.encoder.begin_segment():
            self._write(self._entry(item, told_ms))

    def _entry(self, item: Item, told_ms: int) -> bytes:
        payload = self.encoder.encode(item)
        entry = Entry(
            producer_name=self._broker,
            sequence_id=self.index,
            publish_time=told_ms,
            payload=payload.data,
            properties=payload.properties,
            broker=BrokerEntryMetadata(self._stamp, self.index),
            unknown=payload.metadata,
        )
        return encode_stored(encode_entry(entry))

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._size += len(data)
        self.index += 1
