"""Writes the sparse index beside a segment (`rgd.storage.marks` reads it).

Law: the index only improves speed, so it is never synced, and a failure to write it is ignored.
The writer adds marks as it writes entries, and `mend` rewrites a missing or stale index.
Entries without a broker's index get no marks.
"""

import contextlib
import os
from itertools import islice
from pathlib import Path
from typing import Final

from rgd.config.plain_files import open_plain_file, read_plain_file
from rgd.storage.headers import Header, walk
from rgd.storage.marks import INDEX_BYTES_MAX, Mark, decode_marks, encode_marks, true_marks

SUFFIX: Final = ".idx"
#: Entries from one mark to the next.
MARK_EVERY: Final = 128


class MarkCounter:
    """Decides which entries get a mark: the first of a segment, and every `MARK_EVERY`-th after it."""

    def __init__(self) -> None:
        self._since_mark = 0

    def mark_for(self, header: Header) -> Mark | None:
        """Count an entry; returns its mark if it gets one."""
        is_due = self._since_mark % MARK_EVERY == 0
        self._since_mark += 1
        if not is_due or header.index is None:
            return None
        return Mark(header.index, header.timestamp, header.offset)


class MarkWriter:
    """Adds marks to the index of the segment that is being written; never raises."""

    def __init__(self, segment: Path) -> None:
        self._segment = segment
        self._counter = MarkCounter()
        self._marks: list[Mark] = []

    def add(self, header: Header) -> None:
        """Count a written entry, and write its mark if it gets one."""
        mark = self._counter.mark_for(header)
        if mark is not None:
            self._marks.append(mark)
            with contextlib.suppress(OSError):
                replace_marks(self._segment, self._marks)


def index_path(segment: Path) -> Path:
    """The sparse index of a segment file."""
    return segment.with_suffix(SUFFIX)


def load_marks(segment: Path) -> list[Mark]:
    """The marks in the file, up to the first that cannot follow its predecessor."""
    try:
        return decode_marks(read_plain_file(index_path(segment), INDEX_BYTES_MAX)[:INDEX_BYTES_MAX])
    except OSError:
        return []


def mend(segment: Path) -> None:
    """Rewrite the index of a segment if it is missing or stale.

    Raises:
        OSError: a file cannot be read or written.
    """
    descriptor = open_plain_file(segment)
    try:
        loaded = load_marks(segment)
        marks = true_marks(descriptor, loaded)
        counter = MarkCounter()
        missing = [
            mark
            for header in walk(descriptor, marks[-1].offset if marks else 0)
            if (mark := counter.mark_for(header)) is not None
        ]
    finally:
        os.close(descriptor)
    # The walk starts at the last mark itself.
    marks += islice(missing, 1 if marks else 0, None)
    replace_marks(segment, marks)


def replace_marks(segment: Path, marks: list[Mark]) -> None:
    """Make `marks` the index of a segment, all at once, unless they are already.

    Raises:
        OSError: the file cannot be written.
    """
    path = index_path(segment)
    data = encode_marks(marks)
    with contextlib.suppress(OSError):
        if read_plain_file(path, len(data)) == data:
            return
    fresh = path.with_suffix(SUFFIX + ".new")
    fresh.write_bytes(data)
    fresh.replace(path)
