"""Makes the parts of a broker that need more than its settings as they are."""

from collections.abc import Callable

from rgd.core.broker.exchange_state import NAME_CONFLICT_ROUNDS
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.level import BucketSettings
from rgd.core.exchange.peers import Peers
from rgd.core.gate.local import LocalGate
from rgd.core.gate.port import Gate
from rgd.core.policies.model import Group, Rates
from rgd.core.units import NS_PER_MS, Kind, Nanos


def gate_of(
    settings: BrokerSettings,
    first_share: Callable[[Group, Kind, Nanos], tuple[int, Rates]] | None = None,
) -> LocalGate:
    """The gate of a broker of these settings; without `first_share` it notes the groups that it is asked for."""
    of_buckets = BucketSettings(
        settings.burst_ns,
        settings.request_max_ms,
        settings.round_ns // NS_PER_MS,
        settings.bounds.buckets,
    )
    return LocalGate(
        of_buckets, first_share, topic_split=settings.topic_split, bounds=settings.bounds.leases
    )


def local(gate: Gate) -> LocalGate:
    """The same, for the fast path.

    Raises:
        TypeError: requests are answered in another process.
    """
    if not isinstance(gate, LocalGate):
        raise TypeError("the gate is in another process: only rgd.core.gate.port reaches it")
    return gate


def peers_of(settings: BrokerSettings) -> Peers:
    """The other brokers."""
    # The owner of a name must have time to answer the hello of another daemon of that name.
    listen_ns = int(NAME_CONFLICT_ROUNDS * settings.round_ns)
    grace_ns = listen_ns + 2 * settings.damping_max_ns
    return Peers(grace_ns, peers_max=settings.peers_max)
