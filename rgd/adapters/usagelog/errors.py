"""The errors of a usage log on disk, in addition to the port's.

Damage is not an error: it is found, named and skipped (`reader.DamagedEntry`). An unwritable disk
is no error either: it stops logging and is tried again (`writer`).
"""

from collections.abc import Sequence
from pathlib import Path

from rgd.ports.usagelog import UsageLogError


class LogNotFound(UsageLogError):
    """There is no such folder or segment file, or the tier holds no log."""

    def __init__(self, place: Path | str) -> None:
        what = (
            "no such log folder or segment file" if isinstance(place, Path) else "no log is there"
        )
        super().__init__(f"{place}: {what}")


class SeveralLogs(UsageLogError):
    """A place holds more than one log, where one was expected."""

    def __init__(self, place: Path | str, names: Sequence[str]) -> None:
        super().__init__(
            f"{place}: expected one log, found {len(names)}: name one of them, for instance {names[0]}"
        )


class LogUnreadable(UsageLogError):
    """The operating system refuses to read it."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(f"{path}: cannot be read: {cause.strerror or cause}")


class LogUnwritable(UsageLogError):
    """The operating system refuses to write beside the log."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(f"{path}: cannot be written: {cause.strerror or cause}")


class SegmentMoved(UsageLogError):
    """A segment left the disk while its log was read; whoever reads again finds it in the tier."""

    transient = True

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: it left the disk while it was read; read again")
