"""What a broker believes of the others, and so what its shares are made of (design 3).

Who changes it is `rgd.core.broker.exchange_state`; what each mode grants, `rgd.core.broker.sharing`.
"""

from enum import StrEnum


class Mode(StrEnum):
    """What a broker believes of the others."""

    #: Nothing yet: it grants from its floor.
    STARTING = "starting"
    #: The usage map.
    LIVE = "live"
    #: Just cut off: the usage map as it was.
    HOLDING = "holding"
    #: Cut off for longer: `exchange.on_isolation`.
    EQUAL = "equal"
    HOLD = "hold"
    OPEN = "open"
    #: Another daemon has our name: its floor, until this one ends.
    YIELDING = "yielding"
    #: Back again: quota / known brokers, until the others have told their state.
    REJOINING = "rejoining"

    @property
    def is_isolated(self) -> bool:
        """Whether the exchange is out of reach."""
        return self in (Mode.HOLDING, Mode.EQUAL, Mode.HOLD, Mode.OPEN)

    @property
    def is_on_floor(self) -> bool:
        """Whether the floor is all that is granted, without bursts."""
        return self in (Mode.STARTING, Mode.YIELDING)

    @property
    def is_waiting(self) -> bool:
        """Whether it has asked the others for their state and not heard it yet."""
        return self in (Mode.STARTING, Mode.REJOINING)

    @property
    def believes_map(self) -> bool:
        """Whether shares come from the usage map."""
        return self in (Mode.LIVE, Mode.HOLDING, Mode.HOLD)
