"""Writes the sparse index beside a segment (`rgd.storage.marks` reads it).

Law: the index only improves speed, so it is never synced, and a failure to write it is ignored.
The writer adds marks as it writes entries, and `mend` rewrites a missing or stale index.
Entries without a broker's index get no marks.
"""

import contextlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from rgd.config.plain_files import open_plain_file, read_plain_file
from rgd.storage.headers import Header, walk
from rgd.storage.marks import INDEX_BYTES_MAX, Mark, decode_marks, encode_marks, true_marks

SUFFIX: Final = ".idx"
#: Entries from one mark to the next.
MARK_EVERY: Final = 128


def marks_of(headers: Iterable[Header]) -> list[Mark]:
    """The marks of the first of some entries, and of every `MARK_EVERY`-th after it."""
    due = islice(headers, 0, None, MARK_EVERY)
    return [Mark(one.index, one.timestamp, one.offset) for one in due if one.index is not None]


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
    with open_plain_file(segment) as descriptor:
        marks = true_marks(descriptor, load_marks(segment))
        missing = marks_of(walk(descriptor, marks[-1].offset if marks else 0))
    # The walk starts at the last mark itself.
    replace_marks(segment, marks + missing[bool(marks) :])


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
