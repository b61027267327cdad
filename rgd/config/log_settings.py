"""The settings of the usage log, its tier and its readers; see `rgd.config.settings`."""

from pathlib import Path

from pydantic import Field

from rgd.config.values import (
    Flag,
    InterceptorNames,
    LogName,
    Millis,
    Seconds,
    Section,
    Size,
    TierUrl,
)
from rgd.ports.usagelog import Fsync, Interceptor


class LogSettings(Section):
    """The usage log."""

    name: LogName = "usage"
    """The log's name: the label `topic` of its lag, a folder of the tier."""
    enabled: Flag = True
    """Whether rounds are logged. Without a log there is no fairness report, and `/v1/log` answers 404; `log.dir`
    still holds the peers and policies that the last run knew."""
    dir: Path = Path("rgd-log")
    """Folder of the log's segments."""
    segment_bytes: Size = Field(default=64 << 20, ge=4 << 10, le=1 << 31)
    """A segment is closed at this size."""
    segment_age_s: Seconds = Field(default=3600, ge=1, le=2_592_000)
    """A segment is closed at this age."""
    local_bytes: Size = Field(default=1 << 30, ge=8 << 10, le=1 << 44)
    """Most bytes of the log on this disk. The oldest closed segments are deleted to keep it, whatever their
    readers and the tier have done; at least two times `log.segment_bytes`."""
    retention_s: Seconds = Field(default=30 * 86_400, ge=1, le=10 * 31_622_400)
    """A closed segment is deleted once its last entry is older, on this disk or, with a tier, there. Of segments
    of earlier runs the age comes from the broker's timestamps."""
    retention_bytes: Size = Field(default=0, ge=0, le=1 << 50)
    """The oldest closed segments of a larger log are deleted; 0: no limit."""
    brokerEntryMetadataInterceptors: InterceptorNames = ",".join(Interceptor)  # noqa: N815 -- Pulsar's name
    """What is added in front of each entry (PIP-70): Pulsar's two by their class names, bare or in full, and own
    ones by entry point or dotted path ([usage log](usage-log.md#interceptors-of-your-own)). Without the
    timestamp, seeking and retention go by publish time, which then never runs backwards; without the index,
    entries are counted from the segment's name."""
    exposingBrokerEntryMetadataToClientEnabled: Flag = False  # noqa: N815 -- Pulsar's name
    """Whether readers over HTTP also get what the broker added in front of an entry."""
    tier_url: TierUrl | None = None
    """Where closed segments go: a folder, or a bucket of an S3-compatible store (endpoint and credentials from
    the environment: `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...). They then leave this disk, and
    `log.retention_s` and `log.retention_bytes` hold in the tier."""
    tier_bytes_per_s: Size = Field(default=0, ge=0, le=1 << 40)
    """Most bytes that go up each second on average, one segment in one piece; 0: no limit."""
    tier_local_s: Seconds = Field(default=0, ge=0, le=31_622_400)
    """How long an uploaded segment stays on this disk."""
    tier_delete_delay_s: Seconds = Field(default=60, ge=0, le=31_622_400)
    """From a segment's mark in the tier to its deletion: readers that have begun may end."""
    tier_look_s: Seconds = Field(default=60, ge=1, le=86_400)
    """How often the uploader looks for what retention gives up in the tier. A segment that is closed goes up at
    once."""
    cursor_hold_s: Seconds = Field(default=7 * 86_400, ge=0, le=10 * 31_622_400)
    """How long after its last acknowledgement a reader's cursor holds back retention."""
    cursor_hold_bytes: Size = Field(default=1 << 40, ge=0, le=1 << 50)
    """How many bytes of closed segments a cursor holds back at most; `log.local_bytes` holds whatever any cursor
    needs."""
    fsync: Fsync = Fsync.INTERVAL
    """When entries are forced to the disk: `always` (each batch), `interval` (every `log.fsync_ms`) or `never`."""
    fsync_ms: Millis = Field(default=1000, ge=1, le=600_000)
    """Time between two, for `log.fsync: interval`."""
