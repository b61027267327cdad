"""What happens in the demo, phase by phase; nothing but data.

Each phase begins with one event, and from then on the load wants what the
phase says. What the brokers should get follows from that by max-min alone.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

GROUP: Final = "gold"
NAMESPACE: Final = ("acme", "orders")
BROKERS: Final = ("broker-1", "broker-2", "broker-3")

#: Messages per second, cluster-wide, at first.
QUOTA: Final = 900.0

#: A phase that is not fair by then has failed.
ROUNDS_MAX: Final = 3
#: How far from its part a broker may be, relative to it.
ERROR_MAX: Final = 0.10


class Change(Enum):
    """What a phase begins with, beside a change of the load."""

    NOTHING = auto()
    #: `Phase.quota` is set through one daemon's admin API.
    QUOTA = auto()
    #: The last broker's daemon is killed; counted from its expiry.
    KILL = auto()
    #: It is started again; counted from when it listens.
    RESTART = auto()


@dataclass(frozen=True, slots=True)
class Phase:
    """One event and what is wanted from then on."""

    name: str
    #: Messages per second, by broker.
    wanted: tuple[float, float, float]
    change: Change = Change.NOTHING
    quota: float = QUOTA
    rounds: int = 8


PHASES: Final = (
    Phase("skewed demand 70/20/10", (1470, 420, 210)),
    Phase("two saturated, one idle", (900, 900, 0)),
    Phase("the idle one wakes", (900, 900, 900)),
    Phase("quota halved through one daemon", (900, 900, 900), Change.QUOTA, QUOTA / 2),
    Phase("one daemon killed", (900, 900, 0), Change.KILL, QUOTA / 2),
    Phase("and started again", (900, 900, 900), Change.RESTART, QUOTA / 2),
)
