"""What may happen to a broker; each carries the moment it happened.

The daemon and the simulator make these; nothing else changes a broker's state
but requests on the short road.
"""

from dataclasses import dataclass

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Message
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Nanos


@dataclass(frozen=True, slots=True)
class Started:
    """The daemon reads the exchange and may speak on it."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class Woken:
    """`Broker.wake_at` has come (earlier or later does no harm)."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message came from the exchange, perhaps our own."""

    now: Nanos
    message: Message


@dataclass(frozen=True, slots=True)
class StateAnnounced:
    """A whole state was received and follows as `MessageReceived`: some of its groups, ahead of it.

    Thousands of new groups get their slots in slices, so that taking in the state itself is short.
    """

    now: Nanos
    rows: UsageColumns
    #: The first of these rows, and behind the last; those before have been announced.
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """A new policy snapshot is in force."""

    now: Nanos
    snapshot: PolicySnapshot
    #: Hash of what is in force, by which peers know that they have the same; 0: not known.
    #: At most `COUNT_MAX`, as `RoundRecord` holds it.
    policies_hash: int = 0
    #: False: nobody has told this broker any policies yet, and the snapshot is empty for that reason.
    known: bool = True


@dataclass(frozen=True, slots=True)
class DemandUnreported:
    """The short road refused work of a group that this broker has no row for."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class Stopping:
    """The daemon is about to leave."""

    now: Nanos


Event = (
    Started
    | Woken
    | MessageReceived
    | StateAnnounced
    | PoliciesChanged
    | DemandUnreported
    | Stopping
)
