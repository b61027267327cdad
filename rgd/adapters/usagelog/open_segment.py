"""The segment that is being written: which entries fit, writing them, and its sparse index.

Law: of a write that fails or stops early, exactly the entries that are whole in the file are counted.
"""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.adapters.usagelog.index import MarkWriter
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.storage.headers import Header
from rgd.wire.frame_runs import Framed, Ints

_MS_PER_S: Final = 1000

#: Pieces that are written in one call; operating systems take 1,024.
PIECES_MAX: Final = 512
#: Entries that are smaller on average are joined first, which is faster than a list of pieces.
JOINED_BYTES_MAX: Final = 4096


class Run(NamedTuple):
    """Encoded entries that follow one another."""

    framed: Framed
    #: [entries] the caller's clock, which may be set back, and the entries' timestamps, which only rise.
    times_ms: Ints
    timestamps: Ints
    #: Of the first one; None: entries carry no index.
    first_index: int | None
    sequence_id: int


@dataclass(slots=True)
class OpenSegment:
    """A file that only entries are appended to."""

    path: Path
    descriptor: int
    size: int
    first_timestamp: int | None
    marks: MarkWriter
    #: Whether it has more than what a segment begins with.
    has_offered: bool
    #: The caller's clock at the last entry, and how far it has moved on since the first; it may be set back.
    offered_ms: int | None = None
    aged_ms: float = 0
    #: Entries of the last `write` that are whole in the file.
    whole: int = 0

    def fitting(self, run: Run, settings: UsageLogSettings) -> int:
        """How many entries of a run it takes: the first one always, if it has none yet."""
        ends = self.size + np.cumsum(run.framed.sizes)
        stamps = run.timestamps.astype(np.float64)
        first = stamps[0] if self.first_timestamp is None else float(self.first_timestamp)
        # Broker time stands still while a clock that was set back catches up.
        ages = np.maximum(stamps - first, self.aged_ms + np.cumsum(self._moves(run.times_ms)))
        fits = (ages < settings.segment_age_s * _MS_PER_S) & (ends <= settings.segment_bytes)
        fits[0] |= not self.has_offered
        return len(fits) if fits.all() else int(fits.argmin())

    def check_linked(self) -> None:
        """Notice that the file was removed: nobody can read what is written to it.

        Raises:
            FileNotFoundError: it was.
        """
        if os.fstat(self.descriptor).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "this segment was removed", str(self.path))

    def write(self, run: Run, count: int, *, is_offered: bool) -> None:
        """Write the first entries of a run.

        Args:
            run: what follows the last entry.
            count: how many of its entries; `whole` says how many were written.
            is_offered: whether they are more than what a segment begins with.

        Raises:
            OSError: not all of them were written.
        """
        pieces: list[bytes] = run.framed.pieces[: 2 * count]
        bytes_in_all = int(run.framed.sizes[:count].sum())
        if bytes_in_all < JOINED_BYTES_MAX * count:
            pieces = [b"".join(pieces)]
        written = self.whole = 0
        try:
            for begin in range(0, len(pieces), PIECES_MAX):
                rest: list[bytes | memoryview] = list(pieces[begin : begin + PIECES_MAX])
                while rest:
                    taken = os.writev(self.descriptor, rest)
                    written += taken
                    rest = _behind(rest, taken)
        finally:
            self._count(run, count if written == bytes_in_all else _whole(run, written))
            self.has_offered |= is_offered and self.whole > 0

    def _count(self, run: Run, count: int) -> None:
        self.whole = count
        if not count:
            return
        if self.first_timestamp is None:
            self.first_timestamp = int(run.timestamps[0])
        self.aged_ms += float(self._moves(run.times_ms[:count]).sum())
        self.offered_ms = int(run.times_ms[count - 1])
        begins = self.size + np.cumsum(run.framed.sizes[:count]) - run.framed.sizes[:count]
        self.size = int(begins[-1] + run.framed.sizes[count - 1])

        def header_at(place: int) -> Header:
            index = None if run.first_index is None else run.first_index + place
            size = int(run.framed.sizes[place])
            return Header(int(begins[place]), size, index, int(run.timestamps[place]))

        self.marks.add(count, header_at)

    def _moves(self, times_ms: Ints) -> NDArray[np.float64]:
        """[times] how far the caller's clock moved on before each."""
        before = times_ms[0] if self.offered_ms is None else self.offered_ms
        moves: Ints = np.maximum(np.diff(times_ms, prepend=np.int64(before)), 0)
        return moves.astype(np.float64)


def _whole(run: Run, written: int) -> int:
    """How many entries of a run end at or before so many bytes."""
    return int(np.searchsorted(np.cumsum(run.framed.sizes), written, side="right"))


def _behind(pieces: list[bytes | memoryview], count: int) -> list[bytes | memoryview]:
    """What is left of pieces whose first `count` bytes were written."""
    for place, piece in enumerate(pieces):
        if count < len(piece):
            return [memoryview(piece)[count:], *pieces[place + 1 :]]
        count -= len(piece)
    return []
