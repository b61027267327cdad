"""Name conflicts: decides which of two daemons with the same broker name keeps it.

Law: two daemons of one name that receive each other's messages agree within a round on which of
them keeps the name, and the other grants no more than its floor from then on.

Every report carries the sender's `Claim` to the name and the other incarnation that it receives
under the name (`rival`). A daemon decides only on a message that names its own incarnation as the
rival, because its sender must be live: a late message of a crashed predecessor cannot name it. The
daemon with the lower (claim, incarnation) keeps the name. So a daemon that has held the name
without a break wins over one that was suspended or isolated, and that one wins over one that has
just started.

A daemon that is new refuses to start if another one keeps the name. Any other yields: it grants its floor for
`yield_rounds`, takes the name back if the other daemon goes until then, and ends if it stays.
"""

from collections.abc import Callable
from enum import Enum, auto
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


class Ruling(Enum):
    """What this daemon does."""

    NONE = auto()
    #: Send a message soon, so that the other daemon learns of this one.
    ANSWER = auto()
    #: As `ANSWER`, and alert, because the conflict is new.
    CONFLICT = auto()
    #: Yield the name.
    YIELD = auto()
    #: Take the name back.
    BACK = auto()
    #: End, or refuse to start.
    END = auto()


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
        back_at = max(self._look_at, self._rival_seen_at + self._settings.expiry_ns)
        return Nanos(min(back_at, self._end_at))

    @property
    def _end_at(self) -> int:
        assert self.yielded_at is not None
        return self.yielded_at + self._settings.yield_rounds * self._settings.round_ns

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
            self._started_at = Nanos(now - NEW_ROUNDS * self._settings.round_ns)
            self.doubt(now)

    def doubt(self, now: Nanos) -> None:
        """Claim `RETURNING` for a while, because another daemon may have taken the name."""
        self._returning_until = Nanos(now + RETURN_ROUNDS * self._settings.round_ns)

    def meet(self, message: Message, now: Nanos) -> Ruling:
        """Decide on a message of another incarnation under this name."""
        other = message.sender.incarnation
        if isinstance(message, Report):
            # Only reports prove that their sender is live now.
            return self._meet_report(message, now)
        if isinstance(message, Goodbye):
            if other != self._rival:
                return Ruling.NONE
            if self.yielded_at is None:
                self._rival_seen_at = self._proven_at = None
            return self._take_back_if_yielded()
        if self.is_lost:
            return Ruling.NONE
        is_new = isinstance(message, Hello) and self.rival(now) != other
        self._rival, self._rival_seen_at = other, now
        return Ruling.CONFLICT if is_new else Ruling.ANSWER

    def check(self, now: Nanos) -> Ruling:
        """Decide whether a daemon that yielded takes the name back or ends."""
        due_at = self.due_at
        if due_at is None or now < due_at:
            return Ruling.NONE
        if now >= self._end_at:
            return Ruling.END
        if self._link.is_silent(now):
            # This daemon may be the one that receives nothing.
            self._look_at = Nanos(now + self._settings.round_ns // LOOKS_A_ROUND)
            return Ruling.NONE
        return Ruling.BACK

    def lose(self, now: Nanos, *, ends: bool) -> None:
        """Give up the name; for good if this daemon ends."""
        self.is_lost = True
        self.yielded_at = None if ends else now

    def take_back(self, now: Nanos) -> None:
        """Use the name again."""
        self.is_lost = False
        self.yielded_at = self._rival_seen_at = self._proven_at = None
        self.doubt(now)

    def _meet_report(self, report: Report, now: Nanos) -> Ruling:
        other, me = report.sender.incarnation, self._identity.sender.incarnation
        names_us = report.rival == me
        if report.claim is Claim.YIELDED:
            # If both yielded, the one with the lower incarnation takes the name back.
            return self._take_back_if_yielded() if names_us and me < other else Ruling.NONE
        self._rival, self._rival_seen_at = other, now
        if self.is_lost:
            return Ruling.NONE
        if not names_us:
            return Ruling.ANSWER
        is_known = self.is_contested(now)
        self._proven_at = now
        if (report.claim, other) < (self.claim(now), me):
            return Ruling.END if self._is_new(now) else Ruling.YIELD
        return Ruling.ANSWER if is_known else Ruling.CONFLICT

    def _take_back_if_yielded(self) -> Ruling:
        return Ruling.NONE if self.yielded_at is None else Ruling.BACK

    def _is_within_expiry(self, at: Nanos | None, now: Nanos) -> bool:
        return at is not None and now - at <= self._settings.expiry_ns

    def _is_new(self, now: Nanos) -> bool:
        return (
            self._started_at is None
            or now - self._started_at < NEW_ROUNDS * self._settings.round_ns
        )
