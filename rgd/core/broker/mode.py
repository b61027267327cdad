"""The modes of a broker, and every change from one to another.

Law: shares from the usage map are granted only while this broker's own messages come back.

A mode says what shares are computed from (`rgd.core.broker.sharing` does it). A signal is what
happened to the broker's link to the exchange, its peers' answers or its name
(`rgd.core.broker.exchange_state` finds it out). `TRANSITIONS` is all that follows from both: a signal
that is not listed for a mode changes nothing.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from rgd.core.broker.effects import AlarmCode
from rgd.core.policies.model import OnIsolation


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
    #: Quota / known brokers, after isolation, until the peers have sent their state.
    REJOINING = "rejoining"
    #: The floor, because another daemon has this broker's name; until this one ends or has the name
    #: again.
    YIELDING = "yielding"

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


class Signal(Enum):
    """What may change the mode."""

    #: The peers have sent their state, or the time to wait for it is over.
    ANSWERED = auto()
    #: This broker's own messages do not come back.
    SILENT = auto()
    #: The isolation hold is over.
    HOLD_OVER = auto()
    #: A message of its own came back that was sent lately.
    BACK = auto()
    #: It was suspended so long that the peers dropped it.
    DROPPED = auto()
    #: Another daemon has its name; it has its name again.
    NAME_LOST = auto()
    NAME_BACK = auto()


class Transition(NamedTuple):
    """What follows from a signal."""

    #: The next mode; None: the one that `exchange.on_isolation` names (`ExchangeState.take`).
    mode: Mode | None
    alarm: AlarmCode | None = None
    #: Whether the states that the peers sent no longer count, so that all are expected again.
    expects_states: bool = False


_ISOLATED: Final = AlarmCode.ISOLATED
_REJOINED: Final = AlarmCode.REJOINED
_ASKS_AGAIN: Final = Transition(Mode.REJOINING, _REJOINED, expects_states=True)

TRANSITIONS: Final[Mapping[tuple[Mode, Signal], Transition]] = MappingProxyType(
    {
        (Mode.STARTING, Signal.ANSWERED): Transition(Mode.LIVE),
        (Mode.STARTING, Signal.SILENT): Transition(None, _ISOLATED),
        (Mode.LIVE, Signal.SILENT): Transition(Mode.HOLDING, _ISOLATED),
        (Mode.LIVE, Signal.DROPPED): _ASKS_AGAIN,
        # The map is still good, because the hold ends before the peers drop this broker.
        (Mode.HOLDING, Signal.BACK): Transition(Mode.LIVE, _REJOINED, expects_states=True),
        (Mode.HOLDING, Signal.HOLD_OVER): Transition(None),
        **{(Mode(after), Signal.BACK): _ASKS_AGAIN for after in OnIsolation},
        (Mode.REJOINING, Signal.ANSWERED): Transition(Mode.LIVE),
        # The exchange became unreachable before the peers answered.
        (Mode.REJOINING, Signal.SILENT): Transition(None, _ISOLATED),
        **{(mode, Signal.NAME_LOST): Transition(Mode.YIELDING) for mode in Mode},
        # Not only from `YIELDING`, because a fault may have left another mode.
        **{
            (mode, Signal.NAME_BACK): Transition(Mode.REJOINING, expects_states=True)
            for mode in Mode
        },
    }
)
