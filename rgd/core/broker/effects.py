"""What a broker asks the world to do; the daemon and the simulator carry it out.

An effect is a wish, done in order. Whether it succeeded comes back, if it
matters, as an event (our own report read back from the exchange).
"""

from dataclasses import dataclass
from enum import StrEnum

from rgd.core.exchange.messages import Message, RoundRecord


@dataclass(frozen=True, slots=True)
class Publish:
    """Say this on the exchange."""

    message: Message


@dataclass(frozen=True, slots=True)
class Append:
    """Keep this in the usage log."""

    record: RoundRecord


@dataclass(frozen=True, slots=True)
class Remember:
    """Store the names of the live peers for the next start (`stored_peers`)."""

    peers: tuple[str, ...]


class AlarmCode(StrEnum):
    """What an operator should hear of."""

    PEER_JOINED = "peer_joined"
    PEER_LEFT = "peer_left"
    PEER_EXPIRED = "peer_expired"
    PEER_RESTARTED = "peer_restarted"
    REPORTS_MISSED = "reports_missed"
    NAME_CONFLICT = "name_conflict"
    POLICIES_DIFFER = "policies_differ"
    #: Another daemon has our name, and we go.
    NAME_YIELDED = "name_yielded"
    #: The other daemon has gone, and we are back.
    NAME_BACK = "name_back"
    #: Somebody wrote in our name.
    FORGED = "forged"
    SEQUENCE_REFUSED = "sequence_refused"
    TOO_MANY_BROKERS = "too_many_brokers"
    WEIGHT_BOUNDED = "weight_bounded"
    ISOLATED = "isolated"
    REJOINED = "rejoined"
    #: A peer sent rows of more groups without policies (or more rows) than are kept.
    PEER_ROWS_REFUSED = "peer_rows_refused"
    #: More groups are in use than there are slots: the last ones are granted their floor.
    GROUPS_WITHOUT_SLOT = "groups_without_slot"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Tell the operator."""

    code: AlarmCode
    #: The other broker concerned, or "".
    broker: str = ""
    #: What happened and what follows, where the code does not say it.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Halt:
    """Refuse to start or go on: another daemon speaks for this broker's name."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Log and count an exception that was contained: a bug, of which the broker goes on."""

    #: What raised it: a part of the broker's work (`rgd.core.broker.boundary.Part`).
    where: str
    error: Exception


Effect = Publish | Append | Remember | Alarm | Halt | Fault
