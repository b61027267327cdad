"""Makes the parts of a broker that need more than its settings as they are."""

from rgd.core.broker.exchange_state import NAME_CONFLICT_ROUNDS
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.limiter import Limiter
from rgd.core.exchange.peers import Peers
from rgd.core.units import NS_PER_MS


def limiter_of(settings: BrokerSettings, first_share: ShareOf) -> Limiter:
    """The buckets and their decisions."""
    buckets = BucketSettings(
        settings.burst_ns,
        settings.request_max_ms,
        settings.round_ns // NS_PER_MS,
        settings.min_interval_ns // NS_PER_MS,
        settings.bounds.buckets,
    )
    return Limiter(buckets, first_share, topic_split=settings.topic_split)


def peers_of(settings: BrokerSettings) -> Peers:
    """The other brokers."""
    # The owner of a name must have time to answer the hello of another daemon of that name.
    listen_ns = int(NAME_CONFLICT_ROUNDS * settings.round_ns)
    return Peers(
        grace_ns=listen_ns + 2 * settings.damping_max_ns,
        late_ns=settings.round_ns + 2 * settings.damping_max_ns,
        peers_max=settings.peers_max,
    )
