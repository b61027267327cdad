"""The backlog quota in force for a topic, and what a backlog beyond it causes.

Law: size and time have a quota each, and each is found by itself, as Pulsar merges them: the
topic's, else its partitioned topic's, else its namespace's, else the default. So a topic may have
its size limit from itself and its time limit from its namespace, with different actions.
"""

from typing import Final, NamedTuple

from rgd.core.backlog.model import QuotaType
from rgd.core.policies.model import BacklogAction, BacklogQuota, Backlogs, BacklogType
from rgd.core.policies.names import namespace_of_topic
from rgd.core.policies.precedence import backlog_quota
from rgd.core.units import Nanos

_STRICTEST: Final = (BacklogAction.REFUSE, BacklogAction.HOLD)


class QuotaInForce(NamedTuple):
    """The limits of one topic; below 0 is unlimited, and so is a time of 0."""

    limit_bytes: int
    limit_s: int
    size_action: BacklogAction
    time_action: BacklogAction

    def action_of(self, which: QuotaType) -> BacklogAction:
        """What exceeding one limit causes."""
        return self.size_action if which is QuotaType.SIZE else self.time_action

    def exceeded(self, size_bytes: int, age_ms: int | None) -> tuple[QuotaType, ...]:
        """Which limits a backlog exceeds: a size from the limit on, an age beyond it (as Pulsar).

        Args:
            size_bytes: of a topic that has a backlog.
            age_ms: of its oldest message; None is unknown, and exceeds nothing.
        """
        by_size = 0 <= self.limit_bytes <= size_bytes
        by_time = age_ms is not None and 0 < self.limit_s * 1000 < age_ms
        if by_size:
            return (QuotaType.SIZE, QuotaType.TIME) if by_time else (QuotaType.SIZE,)
        return (QuotaType.TIME,) if by_time else ()


class Blocked(NamedTuple):
    """Publishing to a topic is held or refused, because its backlog exceeds its quota."""

    quota_type: QuotaType
    action: BacklogAction
    #: Until then a caller is asked to hold its messages; afterwards it is refused.
    held_until: Nanos
    #: When the next check is due, which may end the block.
    checked_at: Nanos


def quota_in_force(backlogs: Backlogs, topic: str, default: BacklogQuota) -> QuotaInForce:
    """The quota of one topic (full name)."""
    namespace = namespace_of_topic(topic)
    by_size = backlog_quota(backlogs, namespace, topic, BacklogType.SIZE)
    by_age = backlog_quota(backlogs, namespace, topic, BacklogType.AGE)
    size = default if by_size is None else by_size.value
    age = default if by_age is None else by_age.value
    return QuotaInForce(size.size_bytes, age.age_s, size.action, age.action)


def blocking(
    quota: QuotaInForce, exceeded: tuple[QuotaType, ...]
) -> tuple[QuotaType, BacklogAction] | None:
    """The strictest action against producers, with the limit that causes it; None if there is none.

    Of two equal actions the size's counts.
    """
    for action in _STRICTEST:
        for which in exceeded:
            if quota.action_of(which) is action:
                return which, action
    return None
