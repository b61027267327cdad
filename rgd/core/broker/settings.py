"""The settings of a broker in the core; they do not change while it runs."""

from dataclasses import dataclass, field

from rgd.core.backlog.settings import BacklogSettings
from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.exchange.limits import PEERS_MAX
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import OnIsolation, OnUnknown, SharePolicyName, TopicSplit
from rgd.core.shares.model import WEIGHT_ONE


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of `broker`, `exchange` and `shares` in the core's units."""

    sender: Sender
    weight: int = WEIGHT_ONE
    round_ns: int = 1_000_000_000
    min_interval_ns: int = 100_000_000
    damping_max_ns: int = 100_000_000
    tolerance_ppm: int = 100_000
    full_every_rounds: int = 10
    expiry_rounds: int = 3
    isolation_hold_rounds: int = 2
    on_isolation: OnIsolation = OnIsolation.EQUAL
    expected_brokers: int = 1
    #: Peers that the last run knew.
    stored_peers: frozenset[str] = frozenset()
    #: How long a peer may have other policies without an alarm, because brokers load them at
    #: different times.
    policies_patience_ns: int = 0
    #: The decision on requests while no policies are known.
    on_unknown: OnUnknown = OnUnknown.DENY
    policy: SharePolicyName = SharePolicyName.MAX_MIN
    topic_split: TopicSplit = TopicSplit.SHARED
    floor_ppm: int = 10_000
    burst_ns: int = 250_000_000
    request_max_ms: int = 10_000
    #: Rounds for which a daemon that yielded its name grants its floor before it ends.
    yield_rounds: int = 10
    #: Most other brokers.
    peers_max: int = PEERS_MAX
    #: The period of stock Pulsar brokers' reports (`exchange.pulsar_period_s`); 0: there are none.
    stock_period_ns: int = 0
    backlog: BacklogSettings = field(default_factory=BacklogSettings)
    bounds: Bounds = BOUNDS
    #: The number of shards that this broker reads.
    shards: int = 1

    @property
    def patience_ns(self) -> int:
        """A message that has not come back after this is missing, and a process without events for longer was suspended."""
        return self.round_ns + self.damping_max_ns

    @property
    def expiry_ns(self) -> int:
        """A silent broker is removed after this; its last missing heartbeat may still be in flight."""
        return self.expiry_rounds * self.round_ns + self.damping_max_ns
