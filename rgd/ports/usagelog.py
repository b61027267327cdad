"""The usage log's interface: append a payload, never wait for the disk.

Law: a full or broken disk stops logging, but never limiting. Lost entries are
counted.
"""

from enum import StrEnum
from typing import Protocol

from rgd.errors import RgdError


class Fsync(StrEnum):
    """When written entries are synced to disk."""

    #: After every batch.
    ALWAYS = "always"
    #: At the latest `log.fsync_ms` after they were written.
    INTERVAL = "interval"
    #: When the operating system decides; no entry is then known to be on disk.
    NEVER = "never"


class UsageLogError(RgdError):
    """An operation of the usage log failed."""


class LogLocked(UsageLogError):
    """Another process appends to this log; it can be opened after that process stops."""

    transient = True


class UsageLog(Protocol):
    """Stores payloads in order."""

    @property
    def appended(self) -> int:
        """Entries written since the start."""

    @property
    def lost(self) -> int:
        """Entries that were lost (queue full, disk full), or may be lost on a failed disk."""

    @property
    def damaged(self) -> int:
        """Damaged stretches that were found when the log was opened."""

    @property
    def synced_index(self) -> int:
        """Highest index known to be on disk (-1: none)."""

    @property
    def trouble(self) -> str | None:
        """The reason why nothing is written now, as text; None if no problem is known."""

    async def open(self) -> None:
        """Prepare to append after the last complete entry.

        An unwritable disk is no error: it is reported as `trouble`, and tried again.

        Raises:
            LogLocked: another process appends to this log.
        """

    def append(self, payload: bytes, *, broker_timestamp_ms: int) -> None:
        """Queue one payload for writing; never blocks and never raises."""

    async def flush(self) -> None:
        """Return once everything appended before is on disk (or counted as lost)."""

    async def close(self) -> None:
        """Flush and stop. Idempotent; later entries are lost."""
