"""The settings of backlogs in the core; they do not change while it runs."""

from dataclasses import dataclass, field

from rgd.core.policies.model import BacklogAction, BacklogQuota
from rgd.core.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class BacklogSettings:
    """Settings of `backlog` in the core's units; the defaults are Pulsar's."""

    #: Whether checks happen by themselves (`backlogQuotaCheckEnabled`).
    is_checked: bool = True
    #: Time from one check to the next (`backlogQuotaCheckIntervalInSeconds`).
    interval_ns: int = 60 * NS_PER_S
    #: Whether ages are of messages, not of ledgers (`preciseTimeBasedBacklogQuotaCheck`).
    is_precise: bool = False
    #: The quota of topics whose namespace has none either.
    default: BacklogQuota = field(default_factory=lambda: BacklogQuota(-1, -1, BacklogAction.HOLD))
    #: A report counts for so long.
    stale_ns: int = 180 * NS_PER_S
    #: Producers are held for so long after a check found the backlog over its quota, then refused.
    hold_max_ns: int = 30 * NS_PER_S
