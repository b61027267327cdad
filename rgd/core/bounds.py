"""How many entries each table of the core has at most, and how much one slice of work does.

A room takes its bounds as an argument, so that a test can have a small table or slice. A daemon has those
of `BOUNDS`. Requests wait until a slice of the gate ends (`buckets`, `leases`), so that takes under 2 ms of one core; one of
the plane holds up decreases, and is to take under half of `exchange.settle_max_ms`.

Three sorts of bounds are elsewhere: those that others must agree on (the wire, names and numbers in
policies, one report of a backlog), those that the operator sets, and those that belong to one algorithm,
such as the rounds that it remembers.
"""

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class BucketBounds:
    """Of `rgd.core.buckets`, and of the counters of a group's requests."""

    #: Most resolved names kept; a full table is dropped whole.
    chains_max: int = 200_000
    #: Dropped chains freed in one slice, and for each new chain: freeing all at once would take long.
    slice_chains: int = 500
    chains_per_new: int = 4
    #: Limits processed for each new chain: more than a chain can add, so their table stays bounded.
    limits_per_new: int = 4
    #: Limit buckets that are kept even if no chain refers to them. Above it, unused full buckets are
    #: evicted. From `limits_max` on, which is twice the number that chains can refer to, unused buckets
    #: that are not full are evicted too. Eviction checks a few buckets at a time, in turn.
    limits_kept: int = 100_000
    limits_max: int = 800_000
    #: Topics' parts that are weighed in one slice.
    slice_levels: int = 64
    #: Most parts of one group in one kind; further topics share one common part while it is active.
    split_topics_max: int = 10_000
    #: Most groups for which a level has counterfactual buckets; beyond it, the level drops them all.
    counterfactuals_max: int = 100_000
    #: Most subscriptions with counters of throttled events of their own, at some 700 bytes each.
    throttled_max: int = 10_000
    #: Most topics (and callers that hold work back) tracked in one window; further ones are not counted.
    window_topics_max: int = 100_000


@dataclass(frozen=True, slots=True)
class LeaseBounds:
    """Of `rgd.core.leases`."""

    #: Most leases at a time, at some 800 bytes each, and most of one holder.
    leases_max: int = 20_000
    leases_per_holder_max: int = 4_000


@dataclass(frozen=True, slots=True)
class BacklogBounds:
    """Of `rgd.core.backlog`."""

    #: Most topics that a broker keeps backlogs of, and most subscriptions and ledgers of all of them.
    #: Further ones are refused and counted.
    topics_max: int = 200_000
    subscriptions_max: int = 1_000_000
    ledgers_max: int = 1_000_000
    #: Topics that are checked in one slice: 0.5 ms, 1 ms if all of them are to be evicted.
    slice_topics: int = 64
    #: A slice ends after the topic with which it has so many subscriptions, because each may be evicted.
    slice_subscriptions: int = 256


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """Of the usage map, and of the slot ids by which it and the shares are kept."""

    #: Most groups and kinds that a daemon tracks, ten times PIP-82's cluster (100,000 groups in both
    #: kinds); beyond it, a new group of this broker is granted its floor.
    slots_max: int = 2_000_000
    #: Most slots of groups without policies, twice PIP-82's cluster: reports may arrive before
    #: policies.
    unknown_slots_max: int = 400_000
    #: Most rows kept of one broker; further rows are dropped, and then its hash differs.
    rows_max: int = 1_000_000
    #: Most rows kept of one broker whose groups have no policies here: twice what a broker of PIP-82's
    #: cluster sends in both kinds. Policies may arrive later than the reports.
    unknown_rows_max: int = 20_000
    #: Slot ids that are freed at a round's end.
    freed_a_round: int = 4_096
    #: Most bytes of the rows of one report: below `rgd.ports.exchange.PAYLOAD_BYTES_MAX`, with more
    #: room than the rest of a report needs.
    part_bytes_max: int = 1_000_000


@dataclass(frozen=True, slots=True)
class SharingBounds:
    """Of the work on this broker's shares (`rgd.core.broker.sharing`)."""

    #: Most groups whose shares one piece computes, and most rows of the usage map: 26 ms each where Python is slow.
    piece_groups: int = 1_024
    piece_rows: int = 20_000
    #: Most groups without a slot id that are tried again at a round's end.
    retried_a_round: int = 192
    #: Most changed groups whose slot ids, shares and buckets are updated at once.
    changes_max: int = 32


@dataclass(frozen=True, slots=True)
class RoundBounds:
    """Of the work of ticks and of a round's end (`rgd.core.broker.rounds`)."""

    #: Most groups of an early report.
    early_groups: int = 64
    #: Most rows of the table that one piece ticks, or closes and logs: 22 ms where Python is slow.
    piece_rows: int = 1_024


@dataclass(frozen=True, slots=True)
class StockBounds:
    """Of the stock brokers' rows (`rgd.core.stock`), and of the work on them (`rgd.core.broker.stock_work`)."""

    #: Most stock brokers, groups of one broker (in both kinds), and rows in all.
    brokers_max: int = 1_000
    broker_rows_max: int = 40_000
    rows_max: int = 400_000
    #: Most brokers that are gone and for which zeros are reported.
    gone_max: int = 1_000
    #: Groups of one report at most.
    report_groups: int = 256
    #: Rest for each group of a report before the next one of changed groups, in nanoseconds: reporting
    #: takes at most about a third of a core.
    rest_ns: int = 100_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a whole broker."""

    buckets: BucketBounds = field(default_factory=BucketBounds)
    leases: LeaseBounds = field(default_factory=LeaseBounds)
    backlog: BacklogBounds = field(default_factory=BacklogBounds)
    exchange: ExchangeBounds = field(default_factory=ExchangeBounds)
    sharing: SharingBounds = field(default_factory=SharingBounds)
    rounds: RoundBounds = field(default_factory=RoundBounds)
    stock: StockBounds = field(default_factory=StockBounds)


BOUNDS: Final = Bounds()
