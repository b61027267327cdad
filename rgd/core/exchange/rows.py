"""Single rows of usage, for views, tests and tools; many at once are `rgd.core.exchange.columns`."""

from dataclasses import dataclass

from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Kind, Pair


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One broker's usage of one group, in one kind."""

    group: str
    kind: Kind
    #: Topics of the group that were active (PIP-82's `topics`).
    topics: int
    #: Rates in Milli per second.
    admitted: Pair
    wanted: Pair
    #: Totals since the sender's start, in whole units.
    admitted_total: Pair
    wanted_total: Pair

    @property
    def is_idle(self) -> bool:
        """Whether the row says 0: PIP-82 removes such a broker from the group's map."""
        return self.wanted == (0, 0) and self.admitted == (0, 0)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A row of the usage log: what one group asked, got and was allowed here in a round."""

    usage: UsageRow
    #: This broker's share and the cluster-wide quota, Milli per second; None is unlimited.
    share: tuple[int | None, int | None]
    quota: tuple[int | None, int | None]
    policy: SharePolicyName
    #: Refused in the round (retries too), whole units.
    refused: Pair = Pair()
    #: Whether the row was sent to the peers in this round, or held back as unchanged.
    sent: bool = True
    #: `refused` by the level that refused, without those that refused nothing; empty: not known.
    refused_by: tuple[tuple[str, Pair], ...] = ()
