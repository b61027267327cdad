"""The settings of backlogs, under Pulsar's key names; see `rgd.config.settings`."""

from pydantic import Field

from rgd.config.values import Count, Flag, Millis, Name, Seconds, Section
from rgd.core.backlog.settings import BacklogSettings as CoreSettings
from rgd.core.policies.model import BacklogAction, BacklogQuota
from rgd.core.units import COUNT_MAX, NS_PER_S

#: Longest of the times here: 31 days.
_LONGEST_S = 31 * 86_400


class BacklogSettings(Section):
    """Backlog quotas: defaults, the check, what is shown of them."""

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
    backlogQuotaCheckEnabled: Flag = True  # noqa: N815 -- Pulsar's name
    """Whether backlogs are checked periodically. If not, only `GET /admin/v2/brokers/backlog-quota-check` has
    them checked; those that it finds blocked are checked until they are inside their quota again."""
    backlogQuotaCheckIntervalInSeconds: Count = Field(default=60, ge=1, le=_LONGEST_S)  # noqa: N815 -- Pulsar's name
    """Time from one check to the next."""
    preciseTimeBasedBacklogQuotaCheck: Flag = False  # noqa: N815 -- Pulsar's name
    """Whether a backlog's age is that of its oldest message (the broker's time of it, else the producer's) or of
    its ledger, which is known without reading the message. Where the one that is chosen is not known, the
    other one is used."""
    backlogQuotaDefaultLimitBytes: Count = Field(default=-1, ge=-1, le=COUNT_MAX)  # noqa: N815 -- Pulsar's name
    """Largest backlog of a topic where neither it nor its namespace has a quota; -1: unlimited."""
    backlogQuotaDefaultLimitSecond: Count = Field(default=-1, ge=-1, le=(1 << 31) - 1)  # noqa: N815 -- Pulsar's name
    """Highest age of such a topic's backlog; 0 and -1: unlimited."""
    backlogQuotaDefaultRetentionPolicy: BacklogAction = BacklogAction.HOLD  # noqa: N815 -- Pulsar's name
    """What happens beyond these two."""
    exposeTopicLevelMetricsInPrometheus: Flag = True  # noqa: N815 -- Pulsar's name
    """Whether metrics of backlogs are of topics and subscriptions, or of namespaces."""
    splitTopicAndPartitionIndexLabel: Flag = False  # noqa: N815 -- Pulsar's name
    """Whether metrics of topics and subscriptions have a partition's index as the label `partition` (-1: the
    topic is none) and not in the label `topic`."""
    stale_after_s: Seconds = Field(default=180, ge=1, le=_LONGEST_S)
    """A topic is forgotten when its backlog was not reported for so long."""
    hold_max_s: Seconds = Field(default=30, ge=0, le=_LONGEST_S)
    """With `producer_request_hold`, producers are asked to hold their messages for so long after a check found
    the backlog over its quota; then they are refused."""
    metrics_topics_max: Count = Field(default=10_000, ge=0, le=1_000_000)
    """Most topics, and most namespaces, with metrics of their own; the others are shown together as `other`."""
    metrics_subscriptions_max: Count = Field(default=20_000, ge=0, le=1_000_000)
    """Most subscriptions with metrics of their own; the others are shown together, by topic."""

    def to_core(self) -> CoreSettings:
        """The settings of the core, in its units."""
        return CoreSettings(
            is_checked=self.backlogQuotaCheckEnabled,
            interval_ns=self.backlogQuotaCheckIntervalInSeconds * NS_PER_S,
            is_precise=self.preciseTimeBasedBacklogQuotaCheck,
            default=BacklogQuota(
                self.backlogQuotaDefaultLimitBytes,
                self.backlogQuotaDefaultLimitSecond,
                self.backlogQuotaDefaultRetentionPolicy,
            ),
            stale_ns=round(self.stale_after_s * NS_PER_S),
            hold_max_ns=round(self.hold_max_s * NS_PER_S),
        )
