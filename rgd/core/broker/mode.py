"""The mode of a broker: what its shares are computed from (design 3).

`rgd.core.broker.exchange_state` changes the mode; `rgd.core.broker.sharing` computes what each mode
grants.
"""

from enum import StrEnum


class Mode(StrEnum):
    """What a broker computes its shares from."""

    #: The floor, because the peers' states are not known yet.
    STARTING = "starting"
    #: The usage map.
    LIVE = "live"
    #: Isolation hold: the usage map as it was when the broker became isolated.
    HOLDING = "holding"
    #: Isolated for longer than the hold: as `exchange.on_isolation` says.
    EQUAL = "equal"
    HOLD = "hold"
    OPEN = "open"
    #: The floor, because another daemon has this broker's name; until this one ends or has the name
    #: again.
    YIELDING = "yielding"
    #: Quota / known brokers, after isolation, until the peers have sent their state.
    REJOINING = "rejoining"

    @property
    def is_isolated(self) -> bool:
        """Whether the exchange is unreachable."""
        return self in (Mode.HOLDING, Mode.EQUAL, Mode.HOLD, Mode.OPEN)

    @property
    def is_on_floor(self) -> bool:
        """Whether only the floor is granted, without bursts."""
        return self in (Mode.STARTING, Mode.YIELDING)

    @property
    def is_waiting(self) -> bool:
        """Whether it has asked the peers for their state and not received it yet."""
        return self in (Mode.STARTING, Mode.REJOINING)

    @property
    def believes_map(self) -> bool:
        """Whether shares are computed from the usage map."""
        return self in (Mode.LIVE, Mode.HOLDING, Mode.HOLD)
