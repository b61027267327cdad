"""The usage log as the daemon sees it: append a round, never wait for the disk nor for its bytes.

Law: a full or broken disk stops logging, but never limiting. Lost entries are
counted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from rgd.errors import RgdError

if TYPE_CHECKING:
    # Settings name what is below, and whoever only answers reads settings without numpy.
    from rgd.core.exchange.messages import Loggable


class Fsync(StrEnum):
    """When written entries are synced to disk."""

    #: After every batch.
    ALWAYS = "always"
    #: At the latest `log.fsync_ms` after they were written.
    INTERVAL = "interval"
    #: When the operating system decides; no entry is then known to be on disk.
    NEVER = "never"


class Interceptor(StrEnum):
    """What a broker adds in front of an entry, by the names of Pulsar's classes."""

    TIMESTAMP = "AppendBrokerTimestampMetadataInterceptor"
    INDEX = "AppendIndexMetadataInterceptor"


class BrokerEntryMetadataInterceptor(Protocol):
    """Adds to what stands in front of an entry (PIP-70, "interceptor interface for Broker Entry Metadata").

    It is called in the log's thread for each entry, in the order of the configured list; more than once where the
    entry did not fit its segment.
    """

    def intercept(self, timestamp_ms: int | None, index: int | None) -> bytes:
        """Further fields of an entry's BrokerEntryMetadata, as protobuf writes them; empty: none.

        Fields 1 and 2 are Pulsar's own. An exception, or bytes that are no such fields, lose the entry, which is counted and
        logged. At the start it is tried once with (0, 0).

        Args:
            timestamp_ms: what Pulsar's timestamp interceptor added, milliseconds since 1970.
            index: what its index interceptor added.
        """


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
        """What was not kept (queue full, disk full), or what a failed disk may not have kept."""

    @property
    def damaged(self) -> int:
        """Damaged stretches that were found when the log was opened."""

    @property
    def synced_index(self) -> int:
        """Highest index known to be on disk (-1: none)."""

    @property
    def deleted(self) -> Mapping[str, int]:
        """Closed segments deleted since the start, by the limit that they exceeded."""

    @property
    def local_bytes(self) -> int:
        """Bytes on this disk."""

    @property
    def trouble(self) -> str | None:
        """The reason why nothing is written now, as text; None if no problem is known."""

    async def open(self) -> None:
        """Prepare to append after the last complete entry.

        An unwritable disk is no error: it is reported as `trouble`, and tried again.

        Raises:
            LogLocked: another process appends to this log.
        """

    def append(self, item: "Loggable", *, broker_timestamp_ms: int) -> bool:
        """Queue one item for writing; False: the queue is full. Then it is lost, but for policies, which are to be offered again.

        Never blocks, never raises, and takes no longer for a large one.
        """

    async def close(self) -> None:
        """Write and sync what was appended, and stop. Idempotent; later entries are lost."""
