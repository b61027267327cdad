"""The settings of the usage log (docs/configuration.md).

Law: every limit of the log has its name here, and the effect of reaching it.
`rgd.config` reads settings from files.
"""

from dataclasses import dataclass

from rgd.adapters.usagelog.retention import Limits
from rgd.ports.usagelog import BrokerEntryMetadataInterceptor, Fsync, Interceptor


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLogSettings:
    """The settings of a log."""

    #: An entry that would make its segment larger begins a new one.
    segment_bytes: int = 64 << 20
    #: An entry that is this much later than the segment's first begins a new one.
    segment_age_s: float = 3600
    #: Most bytes of the log on disk; the oldest closed segments are deleted, read or not.
    local_bytes: int = 1 << 30
    #: Closed segments whose last entry is older are deleted; None: none is.
    retention_s: float | None = 30 * 86_400
    #: Beyond so many bytes the oldest closed segments are deleted, unless a cursor needs them; None: none.
    retention_bytes: int | None = None
    fsync: Fsync = Fsync.INTERVAL
    fsync_ms: int = 1000
    #: Rounds that wait to be written; when it is full the newest is not kept, and counted.
    queue_max: int = 1024
    #: Memory of what waits to be written; the same, but one round alone is always kept.
    queue_bytes_max: int = 64 << 20
    #: What is added in front of an entry (PIP-70): the broker's time, and the index.
    interceptors: frozenset[Interceptor] = frozenset(Interceptor)
    #: What adds further fields, in order.
    own_interceptors: tuple[BrokerEntryMetadataInterceptor, ...] = ()
    #: From a failure of the disk to the next try.
    retry_ms: int = 5000

    @property
    def limits(self) -> Limits:
        """What is kept, as `rgd.adapters.usagelog.retention` takes it."""
        return Limits(
            local_bytes=self.local_bytes,
            retention_ms=None if self.retention_s is None else round(self.retention_s * 1000),
            retention_bytes=self.retention_bytes,
        )
