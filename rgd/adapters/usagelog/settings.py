"""The settings of the usage log, with the names of design 11 where it has one.

Law: every limit of the log has its name here, and the effect of reaching it.
`rgd.config` reads settings from files.
"""

from dataclasses import dataclass

from rgd.ports.usagelog import Fsync
from rgd.wire.frame import PAYLOAD_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLogSettings:
    """The settings of a log."""

    #: An entry that would make its segment larger begins a new one.
    segment_bytes: int = 64 << 20
    #: An entry that is this much later than the segment's first begins a new one.
    segment_age_s: float = 3600
    fsync: Fsync = Fsync.INTERVAL
    fsync_ms: int = 1000
    #: Most entries that wait to be written; when it is full the newest is dropped and counted.
    queue_max: int = 1024
    #: Most payload bytes that wait to be written; the same.
    queue_bytes_max: int = 64 << 20
    #: Time from a failure of the disk to the next attempt.
    retry_ms: int = 5000

    def __post_init__(self) -> None:
        assert self.segment_bytes > 0
        assert self.segment_age_s > 0
        assert self.fsync_ms > 0
        assert self.queue_max > 0
        assert self.queue_bytes_max >= PAYLOAD_MAX, "the largest payload must fit the queue"
        assert self.retry_ms > 0
