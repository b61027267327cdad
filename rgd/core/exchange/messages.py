"""What brokers tell one another, as values; `rgd.wire` knows the bytes.

Every message says who speaks: the broker's name and a random incarnation, new
with each start. Reports carry absolute state (rates, and totals since the
start), never differences, so a lost one changes nothing lasting.
"""

from dataclasses import dataclass, replace

from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Kind, Pair


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says it."""

    broker: str
    #: Random, new at each start: tells a restart from a reordering.
    incarnation: int


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
    #: Totals since the speaker's start, in whole units.
    admitted_total: Pair
    wanted_total: Pair

    @property
    def is_idle(self) -> bool:
        """Whether the row says 0: PIP-82 removes such a broker from the group's map."""
        return self.wanted == (0, 0) and self.admitted == (0, 0)

    def as_idle(self) -> "UsageRow":
        """The row that takes this one back."""
        return replace(self, topics=0, admitted=Pair(), wanted=Pair())


@dataclass(frozen=True, slots=True)
class Report:
    """What changed in a round; without rows it is a heartbeat.

    An idle row (`UsageRow.is_idle`) removes the broker from that group's map.
    """

    speaker: Speaker
    #: 1, 2, 3 ...: a gap tells a receiver that it missed one.
    sequence: int
    #: The period that the rates cover, in ns.
    period_ns: int
    rows: tuple[UsageRow, ...] = ()
    #: These rows are all of the speaker's rows: forget the others.
    full: bool = False
    #: `told_hash` over every row the speaker has told and not taken back.
    rows_hash: int = 0
    #: The broker's weight in max-min, in thousandths.
    weight: int = 1000
    #: Hash of the policies file in force, 0 where policies come from a table.
    policies_hash: int = 0


@dataclass(frozen=True, slots=True)
class Hello:
    """I have just started: everybody, tell me your full state."""

    speaker: Speaker


@dataclass(frozen=True, slots=True)
class Goodbye:
    """I am leaving: forget me at once."""

    speaker: Speaker


@dataclass(frozen=True, slots=True)
class Ask:
    """I missed something of one broker's: that broker, tell your full state again."""

    speaker: Speaker
    broker: str


Message = Report | Hello | Goodbye | Ask


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


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of one broker for the usage log (design 6)."""

    speaker: Speaker
    sequence: int
    period_ns: int
    rows: tuple[ShareRow, ...]
    #: Last sequence seen of each peer, so logs stamped by different clocks can be aligned.
    peers: tuple[tuple[str, int], ...] = ()
    isolated: bool = False
