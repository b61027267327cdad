"""Name conflicts: decides which of two daemons with the same broker name keeps it.

Law: two daemons of one name that receive each other's messages agree within a round on which of
them keeps the name, and the other grants no more than its floor from then on.

Every report carries the sender's `Claim` to the name and the other incarnation that it receives
under the name (`rival`). A daemon decides only on a message that names its own incarnation as the
rival, because its sender must be live: a late message of a crashed predecessor cannot name it. The
daemon with the lower (claim, incarnation) keeps the name. So a daemon that has held the name
without a break wins over one that was suspended or isolated, and that one wins over one that has
just started.

`RULINGS` says what this daemon does. One that yields grants its floor for `yield_rounds`.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from rgd.core.broker.identity import Identity
from rgd.core.broker.link import Link
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Claim, Goodbye, Hello, Message, Report
from rgd.core.units import Nanos

#: Rounds for which a daemon is new. The owner of its name answers within one round.
NEW_ROUNDS: Final = 2

#: Rounds for which a daemon claims `RETURNING`. Every live daemon sends a message within one round.
RETURN_ROUNDS: Final = 2

#: How often in a round a daemon that yielded checks whether the other one is gone.
LOOKS_A_ROUND: Final = 4


class NameState(Enum):
    """How far this daemon has its name."""

    #: It has just started, so the owner of its name may still answer.
    NEW = auto()
    HELD = auto()
    #: Another daemon has it, and this one waits for that one to go.
    YIELDED = auto()
    #: Another daemon has it, and this one ends.
    LOST = auto()


class Sign(Enum):
    """What a message under the name, or the time, says about the other daemon."""

    #: There may be another daemon, or it is known already.
    SEEN = auto()
    #: There is one that was not known.
    FOUND = auto()
    #: There is one, and it keeps the name.
    OUTRANKED = auto()
    #: It has gone, or leaves the name to this daemon.
    GONE = auto()
    #: It has not gone for `yield_rounds`.
    STAYED = auto()


class Ruling(Enum):
    """What this daemon does."""

    NONE = auto()
    #: Send a message soon, so that the other daemon learns of this one.
    ANSWER = auto()
    #: As `ANSWER`, and alert, because the conflict is new.
    CONFLICT = auto()
    #: Refuse to start.
    REFUSED = auto()
    #: Yield the name.
    YIELD = auto()
    #: Take the name back.
    BACK = auto()
    #: End.
    END = auto()


#: The ruling in each state on each sign; on all others, `NONE`.
RULINGS: Final[Mapping[tuple[NameState, Sign], Ruling]] = MappingProxyType(
    {
        (NameState.NEW, Sign.SEEN): Ruling.ANSWER,
        (NameState.NEW, Sign.FOUND): Ruling.CONFLICT,
        (NameState.NEW, Sign.OUTRANKED): Ruling.REFUSED,
        (NameState.HELD, Sign.SEEN): Ruling.ANSWER,
        (NameState.HELD, Sign.FOUND): Ruling.CONFLICT,
        (NameState.HELD, Sign.OUTRANKED): Ruling.YIELD,
        (NameState.YIELDED, Sign.GONE): Ruling.BACK,
        (NameState.YIELDED, Sign.STAYED): Ruling.END,
    }
)


class NameClaim:
    """This daemon's claim to its name, and what it knows of other daemons under it."""

    def __init__(
        self,
        settings: BrokerSettings,
        identity: Identity,
        link: Link,
        *,
        is_isolated: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._link = link
        self._is_isolated = is_isolated
        self._round_ns = settings.round_ns
        self._expiry_ns = settings.expiry_ns
        self._started_at: Nanos | None = None
        #: Until when this daemon claims `RETURNING`.
        self._returning_until = Nanos(0)
        #: The other incarnation received last under this name, and when; it may be a late message.
        self._rival = 0
        self._rival_seen_at: Nanos | None = None
        #: When another daemon last proved to be live, by naming this incarnation.
        self._proven_at: Nanos | None = None
        self._look_at = Nanos(0)
        self.yielded_at: Nanos | None = None
        #: Whether the name is another daemon's; then this one sends no goodbye, which would remove
        #: the other.
        self.is_lost = False

    @property
    def due_at(self) -> Nanos | None:
        """When `check` has something to decide."""
        if self.yielded_at is None or self._rival_seen_at is None:
            return None
        back_at = max(self._look_at, self._rival_seen_at + self._expiry_ns)
        return Nanos(min(back_at, self._end_at))

    @property
    def _end_at(self) -> int:
        assert self.yielded_at is not None
        return self.yielded_at + self._settings.yield_rounds * self._round_ns

    @property
    def is_started(self) -> bool:
        """Whether this daemon uses the name."""
        return self._started_at is not None

    def is_contested(self, now: Nanos) -> bool:
        """Whether another live daemon is known under this name (`rgd_name_conflict`)."""
        return self.is_lost or self._is_within_expiry(self._proven_at, now)

    def rival(self, now: Nanos) -> int:
        """The other incarnation that this daemon's reports name; 0: none."""
        return self._rival if self._is_within_expiry(self._rival_seen_at, now) else 0

    def claim(self, now: Nanos) -> Claim:
        """The claim that this daemon's reports carry."""
        if self.is_lost:
            return Claim.YIELDED
        if self._is_new(now):
            return Claim.STARTING
        if self._is_isolated() or now < self._returning_until:
            return Claim.RETURNING
        return Claim.HELD

    def start(self, now: Nanos, *, resumes: bool) -> None:
        """Begin to use the name, or go on with it."""
        self._started_at = now
        if resumes:
            self._started_at = Nanos(now - NEW_ROUNDS * self._round_ns)
            self.doubt(now)

    def doubt(self, now: Nanos) -> None:
        """Claim `RETURNING` for a while, because another daemon may have taken the name."""
        self._returning_until = Nanos(now + RETURN_ROUNDS * self._round_ns)

    def meet(self, message: Message, now: Nanos) -> Ruling:
        """Decide on a message of another incarnation under this name."""
        return self._rule(self._sign_of(message, now), now)

    def check(self, now: Nanos) -> Ruling:
        """Decide whether a daemon that yielded takes the name back or ends."""
        due_at = self.due_at
        if due_at is None or now < due_at:
            return Ruling.NONE
        if now >= self._end_at:
            return self._rule(Sign.STAYED, now)
        if self._link.is_silent(now):
            # This daemon may be the one that receives nothing.
            self._look_at = Nanos(now + self._round_ns // LOOKS_A_ROUND)
            return Ruling.NONE
        return self._rule(Sign.GONE, now)

    def lose(self, now: Nanos, *, ends: bool) -> None:
        """Give up the name; for good if this daemon ends."""
        self.is_lost = True
        self.yielded_at = None if ends else now

    def take_back(self, now: Nanos) -> None:
        """Use the name again."""
        self.is_lost = False
        self.yielded_at = self._rival_seen_at = self._proven_at = None
        self.doubt(now)

    def _rule(self, sign: Sign | None, now: Nanos) -> Ruling:
        if sign is None:
            return Ruling.NONE
        return RULINGS.get((self._state(now), sign), Ruling.NONE)

    def _state(self, now: Nanos) -> NameState:
        if self.is_lost:
            return NameState.LOST if self.yielded_at is None else NameState.YIELDED
        return NameState.NEW if self._is_new(now) else NameState.HELD

    def _sign_of(self, message: Message, now: Nanos) -> Sign | None:
        """What a message says, and note its sender; only reports prove that it is live now."""
        other = message.sender.incarnation
        if isinstance(message, Report):
            return self._sign_of_report(message, now)
        if isinstance(message, Goodbye):
            if other != self._rival:
                return None
            if self.yielded_at is None:
                self._rival_seen_at = self._proven_at = None
            return Sign.GONE
        if self.is_lost:
            return None
        is_found = isinstance(message, Hello) and self.rival(now) != other
        self._rival, self._rival_seen_at = other, now
        return Sign.FOUND if is_found else Sign.SEEN

    def _sign_of_report(self, report: Report, now: Nanos) -> Sign | None:
        other = report.sender.incarnation
        me = self._identity.sender.incarnation
        names_us = report.rival == me
        if report.claim is Claim.YIELDED:
            # If both yielded, the one with the lower incarnation takes the name back.
            return Sign.GONE if names_us and me < other else None
        self._rival, self._rival_seen_at = other, now
        if self.is_lost or not names_us:
            return Sign.SEEN
        is_known = self.is_contested(now)
        self._proven_at = now
        if (report.claim, other) < (self.claim(now), me):
            return Sign.OUTRANKED
        return Sign.SEEN if is_known else Sign.FOUND

    def _is_within_expiry(self, at: Nanos | None, now: Nanos) -> bool:
        return at is not None and now - at <= self._expiry_ns

    def _is_new(self, now: Nanos) -> bool:
        return self._started_at is None or now - self._started_at < NEW_ROUNDS * self._round_ns
