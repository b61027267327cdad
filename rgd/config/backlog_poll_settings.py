"""The settings of the poller of a stock Pulsar's backlogs; see `rgd.config.backlog_settings`."""

from pydantic import Field

from rgd.config.section import Section
from rgd.config.values import Count, Flag, Millis, Name


class BacklogPollSettings(Section):
    """How backlogs are read from a stock Pulsar, and evicted there."""

    poll: Flag = False
    """Whether the backlogs of the topics that this daemon's broker owns are read from Pulsar's admin API at
    `exchange.admin_url`."""
    poll_ms: Millis = Field(default=30_000, ge=100, le=3_600_000)
    """Time from one poll of the backlogs to the next. Less than `backlogQuotaCheckIntervalInSeconds`, so that a
    check sees what is true now."""
    poll_topics_max: Count = Field(default=10_000, ge=1, le=200_000)
    """Most topics of one poll: a call each, sometimes two or three. Further topics take turns."""
    broker_address: Name | None = None
    """The address of the broker beside this daemon, as `pulsar-admin brokers list` names it (`host:8080`).
    Without it the live broker at `exchange.admin_url`, else the one whose host is `broker.name`; a daemon
    never reads another broker's topics."""
    enforce: Flag = False
    """Whether evictions of polled topics are carried out through the admin API: messages are lost. Otherwise
    they are only named (`GET /v1/evictions`)."""
