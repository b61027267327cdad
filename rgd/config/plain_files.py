"""Reads a file of a given name without ever blocking on it, replaces one whole, and sets one aside.

Law: only regular files are read, up to a size. Opening a FIFO waits for a writer, and reading a device may
never end. A thread that does either cannot be stopped, and blocks the exit of the process.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: What a damaged file's name ends in, and the most of one name that are kept.
SUFFIX: Final = ".damaged"
KEPT_MAX: Final = 16
#: Largest file that has one token in it.
TOKEN_BYTES_MAX: Final = 16 << 10

_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_plain_file(path: Path, bytes_max: int) -> bytes:
    """The first bytes of a regular file, one more than `bytes_max` where it is larger; follows links.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with open_plain_file(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(bytes_max + 1)


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file: a crash at any moment leaves the old content or the new one; one call at a time for a path.

    `mode` is that of a new file, before the umask.

    Raises:
        OSError: it cannot be written, and is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        # Whatever a process of this number left there, or somebody else put there, is not written to.
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            # An empty file after a loss of power would be taken for a damaged one.
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class SetAside:
    """A damaged file that was renamed."""

    path: Path
    #: Where it is now; None: it could not be renamed, and will be overwritten.
    kept: Path | None
    why: str


def set_aside(path: Path, why: str) -> SetAside:
    """Rename a damaged file, so that its name is free; the first `KEPT_MAX` - 1 and the last are kept."""
    numbers = range(KEPT_MAX)
    names = [path.with_name(f"{path.name}{SUFFIX}-{number}") for number in numbers]
    try:
        kept = next((name for name in names if not name.exists()), names[-1])
        path.replace(kept)
    except OSError:
        return SetAside(path, None, why)
    return SetAside(path, kept, why)


@contextlib.contextmanager
def open_plain_file(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """The descriptor of a regular file that exists, until it is closed again; follows links.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    # Checked before the open, which may have an effect on a device, and after it, because the file may have changed.
    _check(path.stat().st_mode)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(os.fstat(descriptor).st_mode)
        yield descriptor
    finally:
        os.close(descriptor)


#: Of each file: inode, size and time of change (ns); None if there is no such file.
Fingerprint = tuple[tuple[int, int, int] | None, ...]


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """What differs once one of the files was written again or replaced; follows links, reads no content."""
    return tuple(map(_fingerprint, paths))


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((kind for is_it, kind in _KINDS if is_it(mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")
