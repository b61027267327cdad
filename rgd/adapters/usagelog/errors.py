"""The errors of a usage log on disk, in addition to the port's.

Damage is not an error: it is found, named and skipped (`reader.DamagedEntry`). An unwritable disk
is no error either: it stops logging and is tried again (`writer`).
"""

from pathlib import Path

from rgd.ports.usagelog import UsageLogError


class LogNotFound(UsageLogError):
    """The folder or segment file does not exist."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: no such log folder or segment file")


class LogUnreadable(UsageLogError):
    """The operating system refuses to read it."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(f"{path}: cannot be read: {cause.strerror or cause}")
