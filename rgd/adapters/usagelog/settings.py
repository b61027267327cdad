"""The settings of the usage log (docs/configuration.md).

Law: every limit of the log has its name here, and the effect of reaching it.
`rgd.config` reads settings from files.
"""

from dataclasses import dataclass, field

from rgd.adapters.usagelog.retention import Limits
from rgd.ports.usagelog import BrokerEntryMetadataInterceptor, Fsync, Interceptor


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLogSettings:
    """The settings of a log."""

    #: An entry that would make its segment larger begins a new one.
    segment_bytes: int = 64 << 20
    #: An entry that is this much later than the segment's first begins a new one.
    segment_age_ms: int = 3_600_000
    #: What is kept on disk.
    limits: Limits = field(default_factory=Limits)
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
