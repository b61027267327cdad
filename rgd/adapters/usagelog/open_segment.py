"""The segment that is being written: whether an entry fits, writing it, and the segment's sparse index.

Law: an entry counts once all of it is in the file.
"""

import contextlib
import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from rgd.adapters.usagelog.index import MARK_EVERY, marks_of, replace_marks
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.storage.headers import Header
from rgd.storage.marks import Mark


@dataclass(frozen=True, slots=True)
class Encoded:
    """The next entry, ready to be written."""

    #: With its length before it.
    stored: bytes
    #: Only rises, also while a clock that was set back catches up.
    timestamp: int
    #: None: it carries none.
    index: int | None
    sequence_id: int


@dataclass(slots=True)
class OpenSegment:
    """A file that only entries are appended to."""

    path: Path
    descriptor: int
    size: int = 0
    entries: int = 0
    #: Its sparse index.
    marks: list[Mark] = field(default_factory=list)
    first_timestamp: int | None = None
    #: Whether it has more than what a segment begins with.
    has_offered: bool = False

    def takes(self, entry: Encoded, settings: UsageLogSettings) -> bool:
        """Whether an entry fits: the first one always.

        A clock that jumps ahead begins a segment, so that no segment is older than it seems.
        """
        first = entry.timestamp if self.first_timestamp is None else self.first_timestamp
        fits = (
            entry.timestamp - first < settings.segment_age_ms
            and self.size + len(entry.stored) <= settings.segment_bytes
        )
        return fits or not self.has_offered

    def check_linked(self) -> None:
        """Notice that the file was removed: nobody can read what is written to it.

        Raises:
            FileNotFoundError: it was.
        """
        if os.fstat(self.descriptor).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "this segment was removed", str(self.path))

    def write(self, entry: Encoded, *, is_offered: bool) -> None:
        """Write the next entry.

        Args:
            entry: it.
            is_offered: whether it is more than what a segment begins with.

        Raises:
            OSError: not all of it was written.
        """
        rest = memoryview(entry.stored)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]
        self.has_offered |= is_offered
        if self.first_timestamp is None:
            self.first_timestamp = entry.timestamp
        if self.entries % MARK_EVERY == 0:
            header = Header(self.size, len(entry.stored), entry.index, entry.timestamp)
            self.marks += marks_of([header])
            # The index only improves speed.
            with contextlib.suppress(OSError):
                replace_marks(self.path, self.marks)
        self.entries += 1
        self.size += len(entry.stored)
