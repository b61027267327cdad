"""The messages that brokers send each other, as values; `rgd.wire` encodes them.

Every message identifies its sender: the broker's name and a random incarnation, new
at each start. Reports carry absolute state (rates), never differences, so a
lost report has no lasting effect.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from rgd.core.exchange.columns import NO_SHARES, NO_USAGE, ShareColumns, UsageColumns
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.policies.snapshot import PolicySnapshot


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message."""

    broker: str
    #: Random, new at each start: distinguishes a restart from a reordering.
    incarnation: int


class Span(NamedTuple):
    """A range of hashes of groups and kinds (`GroupIndex.hashes`): `begin` to before `end`."""

    begin: int = 0
    end: int = 1 << 64


#: The span of every group and kind.
ALL_ROWS: Final = Span()


class Claim(IntEnum):
    """How strongly a daemon claims its broker's name; of two daemons the lower claim keeps it.

    Of equal claims the lower incarnation keeps the name, so both daemons decide the same.
    """

    #: It has held the name without interruption.
    HELD = 0
    #: It was stopped or disconnected long enough for another daemon to take the name.
    RETURNING = 1
    #: It has just started.
    STARTING = 2
    #: It found another daemon under its name and is leaving.
    YIELDED = 3


@dataclass(frozen=True, slots=True)
class Report:
    """The rows that changed in a round; without rows it is a heartbeat.

    An idle row (`UsageRow.is_idle`) removes the broker from that group's map.
    """

    sender: Sender
    #: 1, 2, 3 ...: a gap shows a receiver that it missed a report.
    sequence: int
    #: The period that the rates cover, in ns.
    period_ns: int
    rows: UsageColumns = field(default_factory=lambda: NO_USAGE)
    #: These rows are all of the sender's rows in `span`: the receiver deletes any others there.
    full: bool = False
    #: The hash (`rgd.core.exchange.rows_hash`) of every row that the sender advertises at present.
    rows_hash: int = 0
    #: The broker's weight in max-min, in thousandths.
    weight: int = 1000
    #: Hash of the policies in force, whatever their source; 0: unknown.
    policies_hash: int = 0
    #: Number of live brokers that the sender knows, itself included.
    members: int = 1
    #: Of a full report: the part of the state it contains. A state too large for one message has
    #: several.
    span: Span = ALL_ROWS
    #: More reports of the same state follow at once; `rows_hash` holds only after the last of them.
    more: bool = False
    #: How strongly the sender claims its name.
    claim: Claim = Claim.HELD
    #: Incarnation of another daemon that the sender received under its own name, 0: none. It proves
    #: to that daemon that the sender is live: a crashed sender cannot have received from its
    #: successor.
    rival: int = 0
    #: The groups that the rows, `full`, `rows_hash` and `sequence` are of.
    shard: Shard = WHOLE
    #: The number of shards of the layout that the sender reads.
    shards: int = 1
    #: Of each layout with shards that the sender writes: the sequence of its last report of each shard.
    shard_sequences: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Hello:
    """The sender has just started and asks every broker for its full state."""

    sender: Sender
    #: As in `Report`.
    shards: int = 1


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The sender is leaving: receivers remove it at once."""

    sender: Sender


@dataclass(frozen=True, slots=True)
class Ask:
    """The sender missed a report of `broker` and asks that broker for its full state."""

    sender: Sender
    broker: str
    #: False: any message is enough, because the broker has been silent for long.
    full: bool = True
    #: The groups whose rows are missing. Of a shard, `broker` may be the sender: then all are asked.
    shard: Shard = WHOLE


Message = Report | Hello | Goodbye | Ask


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of one broker for the usage log."""

    sender: Sender
    sequence: int
    period_ns: int
    rows: ShareColumns = field(default_factory=lambda: NO_SHARES)
    #: Last sequence seen of each peer, to align logs that are stamped by different clocks.
    peers: tuple[tuple[str, int], ...] = ()
    isolated: bool = False
    #: Requests of the round granted because no limit applied to their names, including
    #: `unknown_granted`.
    ungoverned: int = 0
    #: Requests granted, and refused, because no policies were known.
    unknown_granted: int = 0
    unknown_refused: int = 0
    #: Like `Report.policies_hash`, at the end of the round.
    policies_hash: int = 0
    #: The broker's weight in max-min, in thousandths.
    weight: int = 1000
    #: A round too large for one entry is split into several: this is part 1, 2 ... of `parts`, with
    #: some of the rows and peers.
    part: int = 1
    parts: int = 1
    #: Rounds and entries that the log had lost since the start, at the time of this record.
    lost: int = 0
    #: The broker's own monotonic clock at the end of the round, in ns.
    ended_ns: int = 0
    #: Whether this is the last record of an orderly stop, after which no count is missing.
    last: bool = False
    #: Lower 32 bits of the incarnation of each of `peers`.
    peer_incarnations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """The policies in force on a broker, for the usage log."""

    sender: Sender
    snapshot: PolicySnapshot
    #: Like `Report.policies_hash`.
    policies_hash: int = 0


#: An item of the usage log; bytes are a record that is already encoded.
Loggable = RoundRecord | PoliciesInForce | bytes
