"""Names and paths of a log on disk, and the lock that excludes a second writer.

    ROOT/<broker>/00000000000000000000.log     a segment, named by its first index
    ROOT/<broker>/00000000000000000000.idx     its sparse index (rgd.adapters.usagelog.index)
    ROOT/<broker>/.lock                        held by the daemon that writes this log

Law: different brokers never share a folder, whatever their names; two processes never append to one
log. The lock is the operating system's (`flock`), which releases it when its holder ends in any way.
The file stays, so that no process locks a file that another one has just removed.
"""

import contextlib
import fcntl
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable
from rgd.ports.usagelog import LogLocked
from rgd.wire.checks import check_broker
from rgd.wire.errors import WireError
from rgd.wire.segment import parse_segment_name

LOCK_NAME: Final = ".lock"

#: Longest folder name; file systems take 255 bytes.
_FOLDER_NAME_MAX: Final = 200
_FOLDER_HASH_DIGITS: Final = 32


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """A segment file of a folder."""

    first_index: int
    path: Path
    #: First index of the segment behind it; None: it is the last one.
    end: int | None = None


def log_folder(root: Path, broker: str) -> Path:
    """The folder of the log of `broker`.

    Raises:
        Malformed: `broker` is no valid broker name.
    """
    name = quote(check_broker(broker), safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > _FOLDER_NAME_MAX:
        digest = hashlib.sha256(broker.encode()).hexdigest()[:_FOLDER_HASH_DIGITS]
        # No quoted name has a plus sign, so this name is unique.
        name = f"{name[: _FOLDER_NAME_MAX - len(digest) - 1]}+{digest}"
    return root / name


def list_segments(folder: Path) -> list[Segment]:
    """The segments of a log folder, by first index.

    Raises:
        LogNotFound: there is no such folder.
        LogUnreadable: it cannot be read.
    """
    try:
        found = [_segment_at(path) for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise LogNotFound(folder) from exc
    except OSError as exc:
        raise LogUnreadable(folder, exc) from exc
    segments = sorted(segment for segment in found if segment is not None)
    ends = (*(segment.first_index for segment in segments[1:]), None)
    return [replace(segment, end=end) for segment, end in zip(segments, ends, strict=False)]


def list_logs(path: Path) -> list[Path]:
    """The log folders at `path`: itself, and those directly in it, by name.

    Raises:
        LogNotFound: there is no such folder.
        LogUnreadable: it, or one in it, cannot be read.
    """
    folders = [path] if list_segments(path) else []
    return folders + [
        inner for inner in sorted(path.iterdir()) if inner.is_dir() and list_segments(inner)
    ]


class FolderLock:
    """The right to append to the log in a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, unless it is held already; creates the folder, also one that was removed or moved away meanwhile.

        Raises:
            LogLocked: another process, or another log of this one, has it.
            OSError: the folder cannot be created or locked.
        """
        if self._is_in_place():
            return
        # A file that was removed or moved with its folder locks nothing that others could open.
        self.release()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise LogLocked(
                f"{self._path.parent}: another rgd daemon (process {holder}) writes this log; "
                "give each daemon its own broker.name or log.dir"
            ) from exc
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        # The holder's name is only for the message above; on a full disk it is missing.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def _is_in_place(self) -> bool:
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_written(folder: Path) -> bool:
    """Whether a daemon has the log in `folder` open."""
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except LogLocked:
        return True
    lock.release()
    return False


def _segment_at(path: Path) -> Segment | None:
    try:
        return Segment(parse_segment_name(path.name), path)
    except WireError:
        return None
