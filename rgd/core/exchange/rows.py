"""Single rows of usage, for views, tests and tools; `rgd.core.exchange.columns` has many."""

from dataclasses import dataclass

from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Kind, Pair


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One broker's usage of one group, in one kind."""

    group: str
    kind: Kind
    #: Number of active topics of the group (PIP-82's `topics`).
    topics: int
    #: Rates in Milli per second.
    admitted: Pair
    wanted: Pair

    @property
    def is_idle(self) -> bool:
        """Whether the row is all 0: PIP-82 removes such a broker from the group's map."""
        return self.wanted == (0, 0) and self.admitted == (0, 0)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A row of the usage log: demand, usage and share of one group on this broker in a round."""

    usage: UsageRow
    #: This broker's share and the cluster-wide quota, Milli per second; None is unlimited.
    share: tuple[int | None, int | None]
    quota: tuple[int | None, int | None]
    policy: SharePolicyName
    #: Refused in the round (retries too), whole units.
    refused: Pair = Pair()
    #: Whether the row was sent to the peers in this round, or held back as unchanged.
    sent: bool = True
    #: `refused` by the level that refused, without levels that refused nothing; empty: unknown.
    refused_by: tuple[tuple[str, Pair], ...] = ()
    #: Totals since the broker's start, in whole units.
    admitted_total: Pair = Pair()
    wanted_total: Pair = Pair()
