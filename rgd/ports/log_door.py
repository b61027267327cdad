"""The usage log as its HTTP door sees it: entries from a position on, and readers' positions.

Law: nothing here waits for the disk on the event loop; an answer is bounded, however large the log is.
A position is the index of the first entry that a reader has not read.
"""

from dataclasses import dataclass
from typing import Protocol

from rgd.errors import RgdError

#: Most readers whose positions are kept.
CURSORS_MAX = 64
#: Most entries of one answer, and bytes after which it ends, however few entries it has.
ENTRIES_MAX = 1000
ENTRIES_BYTES_MAX = 1 << 20


class UnknownCursor(RgdError):
    """No reader of this name has acknowledged anything."""

    def __init__(self, name: str) -> None:
        super().__init__(f"cursor {name}: no reader of this name has acknowledged anything")


class CursorRefused(RgdError):
    """The position cannot be kept: there are too many, or it is beyond the log's end."""


@dataclass(frozen=True, slots=True)
class CursorView:
    """A reader's position."""

    name: str
    #: Of the first entry that it has not acknowledged.
    index: int
    #: Entries from there to the log's end.
    behind: int
    #: Since it last acknowledged, or since the daemon's start.
    idle_s: float
    #: Whether it holds back retention.
    holds: bool
    #: Entries that were deleted before it acknowledged them.
    passed: int


@dataclass(frozen=True, slots=True)
class BrokerMetadataView:
    """What the broker added to an entry."""

    broker_timestamp: int | None
    index: int | None


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry as a broker gives it to a consumer."""

    #: The producer's headers and the payload, in base64.
    headers_and_payload: bytes
    #: Only where `log.exposingBrokerEntryMetadataToClientEnabled` is set.
    broker_entry_metadata: BrokerMetadataView | None = None


@dataclass(frozen=True, slots=True)
class EntriesView:
    """`GET /v1/log/entries`."""

    entries: tuple[EntryView, ...]
    #: Where to go on: what to acknowledge once these are dealt with.
    next_index: int
    #: Whether there was more to read just now.
    more: bool = False
    #: Entries between what was asked for and the first that is still there.
    passed: int = 0
    #: Damaged places that were stepped over.
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class From:
    """Where to begin: at an index, or at the first entry at or after a time, in ms since 1970."""

    index: int = 0
    time_ms: int | None = None


class NotExposed(RgdError):
    """A reader wants to see what the broker added to entries, and may not."""

    def __init__(self) -> None:
        super().__init__(
            "expose: log.exposingBrokerEntryMetadataToClientEnabled is false, so what the broker added is not shown"
        )


class LogOff(RgdError):
    """There is no usage log to read."""

    def __init__(self) -> None:
        super().__init__("the usage log is off: set log.enabled to true, and restart the daemon")


class LogDoor(Protocol):
    """The usage log of a running daemon."""

    def cursors(self) -> tuple[CursorView, ...]:
        """Every reader's position, by name."""

    def cursor(self, name: str) -> CursorView:
        """One reader's position.

        Raises:
            UnknownCursor: there is none.
        """

    async def acknowledge(self, name: str, index: int) -> CursorView:
        """Keep a reader's position; it may go back.

        Raises:
            CursorRefused: it cannot be kept.
            UsageLogError: the disk refuses.
        """

    async def forget(self, name: str) -> None:
        """Keep a reader's position no longer.

        Raises:
            UnknownCursor: there is none.
            UsageLogError: the disk refuses.
        """

    async def entries(self, start: From, limit: int, *, expose: bool | None = None) -> EntriesView:
        """Entries from a position on, oldest first.

        Args:
            start: where to begin.
            limit: most entries.
            expose: whether to show what the broker added; None: as the daemon's setting says.

        Raises:
            NotExposed: the setting does not allow it.
            UsageLogError, TierError: they cannot be read.
        """
