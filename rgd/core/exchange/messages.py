"""What brokers tell one another, as values; `rgd.wire` knows the bytes.

Every message says who speaks: the broker's name and a random incarnation, new
with each start. Reports carry absolute state (rates, and totals since the
start), never differences, so a lost one changes nothing lasting.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from rgd.core.exchange.columns import NO_SHARES, NO_USAGE, ShareColumns, UsageColumns
from rgd.core.policies.snapshot import PolicySnapshot


@dataclass(frozen=True, slots=True)
class Sender:
    """Who says it."""

    broker: str
    #: Random, new at each start: tells a restart from a reordering.
    incarnation: int


class Span(NamedTuple):
    """A range of the hashes of groups and kinds (`GroupIndex.hashes`): from `begin` to before `end`."""

    begin: int = 0
    end: int = 1 << 64


#: Every group and kind.
ALL_ROWS: Final = Span()


class Claim(IntEnum):
    """How firmly a daemon holds its broker's name; of two daemons the lower claim keeps it.

    Of equal claims the lower incarnation keeps the name, so both compute the same.
    """

    #: It has held the name without a break.
    HELD = 0
    #: It was stopped or cut off for long enough that somebody may have taken the name.
    RETURNING = 1
    #: It started a moment ago.
    STARTING = 2
    #: It found another daemon under its name and goes.
    YIELDED = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What changed in a round; without rows it is a heartbeat.

    An idle row (`UsageRow.is_idle`) removes the broker from that group's map.
    """

    sender: Sender
    #: 1, 2, 3 ...: a gap tells a receiver that it missed one.
    sequence: int
    #: The period that the rates cover, in ns.
    period_ns: int
    rows: UsageColumns = field(default_factory=lambda: NO_USAGE)
    #: These rows are all of the sender's rows in `span`: forget the others there.
    full: bool = False
    #: `advertised_hash` over every row the sender has told and not taken back.
    rows_hash: int = 0
    #: The broker's weight in max-min, in thousandths.
    weight: int = 1000
    #: Hash of the policies in force, whatever their source; 0: not known.
    policies_hash: int = 0
    #: How many live brokers the sender knows of, itself included.
    members: int = 1
    #: Of a full report: which part of the state it is. A state too large for one message is in several.
    span: Span = ALL_ROWS
    #: More reports of the same state follow at once: only with the last of them `rows_hash` holds.
    more: bool = False
    #: How firmly the sender holds its name.
    claim: Claim = Claim.HELD
    #: Incarnation of another daemon that the sender hears under its own name, 0: none. It proves to
    #: that daemon that the sender lives now: a crashed one cannot have heard of its successor.
    rival: int = 0


@dataclass(frozen=True, slots=True)
class Hello:
    """I have just started: everybody, tell me your full state."""

    sender: Sender


@dataclass(frozen=True, slots=True)
class Goodbye:
    """I am leaving: forget me at once."""

    sender: Sender


@dataclass(frozen=True, slots=True)
class Ask:
    """I missed something of one broker's: that broker, tell your full state again."""

    sender: Sender
    broker: str
    #: False: any word will do, you have been silent for long.
    full: bool = True


Message = Report | Hello | Goodbye | Ask


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of one broker for the usage log (design 6)."""

    sender: Sender
    sequence: int
    period_ns: int
    rows: ShareColumns = field(default_factory=lambda: NO_SHARES)
    #: Last sequence seen of each peer, so logs stamped by different clocks can be aligned.
    peers: tuple[tuple[str, int], ...] = ()
    isolated: bool = False
    #: Requests of the round that were granted because no limit applied to their names, those of
    #: `unknown_granted` too.
    ungoverned: int = 0
    #: Requests granted, and refused, because no policies were known.
    unknown_granted: int = 0
    unknown_refused: int = 0
    #: As `Report.policies_hash`, at the round's end.
    policies_hash: int = 0
    #: The broker's weight in max-min, in thousandths.
    weight: int = 1000
    #: A round too large for one entry is in several: this is part 1, 2 ... of `parts`, with some of
    #: the rows and peers.
    part: int = 1
    parts: int = 1
    #: Rounds and entries that the log had lost since the start, when this was written.
    lost: int = 0
    #: The broker's own monotonic clock at the end of the round; 0: not known.
    ended_ns: int = 0
    #: Whether this is the closing record of an orderly stop, after which no count is missing.
    last: bool = False
    #: Lower 32 bits of the incarnation of each of `peers`; empty: not known.
    peer_incarnations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """The policies that a broker goes by, for the usage log (design 6)."""

    sender: Sender
    snapshot: PolicySnapshot
    #: As `Report.policies_hash`.
    policies_hash: int = 0


#: What a usage log takes; bytes are a record that is encoded already.
Loggable = RoundRecord | PoliciesInForce | bytes
