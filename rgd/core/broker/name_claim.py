"""One name, one daemon: who of two that use a name keeps it.

Law: two daemons of one name that hear each other agree within a round which of
them stays, and the other grants no more than its floor from then on.

Every report says how firmly its sender holds the name (`Claim`) and which other
incarnation it hears under it (`rival`). A daemon goes by a message that names its
own incarnation only: that one was written by somebody who lives now, and is no
late message of a crashed predecessor. The lower (claim, incarnation) stays, so a
daemon that has held the name without a break stays before one that was stopped or
cut off, and that one before one that has just started.

The one that goes refuses to start if it is young; otherwise it yields: it stays on
its floor for `yield_rounds` and then ends. If the other one goes before, it is back.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from rgd.core.broker.identity import Identity
from rgd.core.broker.link import Link
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Claim, Goodbye, Hello, Message, Report
from rgd.core.units import Nanos

#: Rounds for which a daemon is new: then the owner of its name, who answers within one, is heard.
NEW_ROUNDS: Final = 2

#: Rounds for which a daemon that was away says so: within one everybody is heard once.
RETURN_ROUNDS: Final = 2

#: How often in a round a daemon that yielded looks whether the other one is gone.
LOOKS_A_ROUND: Final = 4


class Ruling(Enum):
    """What a message under our name, or time, means for us."""

    #: Nothing.
    NONE = auto()
    #: Somebody else uses our name: tell it that we are here.
    ANSWER = auto()
    #: The same, heard for the first time.
    CONFLICT = auto()
    #: We are new: we may not start.
    REFUSED = auto()
    #: We yield the name.
    YIELD = auto()
    #: The other one is gone: the name is ours again.
    BACK = auto()
    #: We yielded and our time is over.
    END = auto()


class NameClaim:
    """What this daemon knows of others under its name."""

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
        self._expiry_ns = settings.expiry_rounds * settings.round_ns + settings.damping_max_ns
        self._started_at: Nanos | None = None
        #: Until when we say that we were away.
        self._returning_until = Nanos(0)
        #: The other incarnation heard last under our name, and when; it may be a late message.
        self._rival = 0
        self._rival_heard_at: Nanos | None = None
        #: When another daemon last proved that it lives.
        self._proven_at: Nanos | None = None
        self._look_at = Nanos(0)
        self.yielded_at: Nanos | None = None
        #: The name is another daemon's: no goodbye of ours may remove it.
        self.is_lost = False

    @property
    def due_at(self) -> Nanos | None:
        """When `check` has something to decide."""
        if self.yielded_at is None or self._rival_heard_at is None:
            return None
        back_at = max(self._look_at, self._rival_heard_at + self._expiry_ns)
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
        """Whether another daemon lives under our name, as far as we know (`rgd_name_conflict`)."""
        return self.is_lost or self._is_within_expiry(self._proven_at, now)

    def rival(self, now: Nanos) -> int:
        """The other incarnation that our reports name, 0: none."""
        return self._rival if self._is_within_expiry(self._rival_heard_at, now) else 0

    def claim(self, now: Nanos) -> Claim:
        """How firmly we hold our name."""
        if self.is_lost:
            return Claim.YIELDED
        if self._is_new(now):
            return Claim.STARTING
        if self._is_isolated() or now < self._returning_until:
            return Claim.RETURNING
        return Claim.HELD

    def start(self, now: Nanos) -> None:
        """Begin to use the name."""
        self._started_at = now

    def doubt(self, now: Nanos) -> None:
        """We stood still or were cut off: somebody may have taken our name."""
        self._returning_until = Nanos(now + RETURN_ROUNDS * self._round_ns)

    def meet(self, message: Message, now: Nanos) -> Ruling:
        """Hear another incarnation under our name."""
        other = message.sender.incarnation
        if isinstance(message, Goodbye):
            return self._part(other)
        if isinstance(message, Report):
            return self._meet_report(message, now)
        if self.is_lost:
            # What lives of the other one are its reports.
            return Ruling.NONE
        is_news = isinstance(message, Hello) and self.rival(now) != other
        self._rival, self._rival_heard_at = other, now
        return Ruling.CONFLICT if is_news else Ruling.ANSWER

    def check(self, now: Nanos) -> Ruling:
        """See what time means for one that yielded."""
        due_at = self.due_at
        if due_at is None or now < due_at:
            return Ruling.NONE
        if now >= self._end_at:
            return Ruling.END
        if self._link.is_silent(now):
            # It may be we who cannot hear.
            self._look_at = Nanos(now + self._round_ns // LOOKS_A_ROUND)
            return Ruling.NONE
        return Ruling.BACK

    def lose(self, now: Nanos, *, ends: bool) -> None:
        """Yield the name; for ever if this daemon ends."""
        self.is_lost = True
        self.yielded_at = None if ends else now

    def take_back(self, now: Nanos) -> None:
        """Use the name again."""
        self.is_lost = False
        self.yielded_at = self._rival_heard_at = self._proven_at = None
        self.doubt(now)

    def _meet_report(self, report: Report, now: Nanos) -> Ruling:
        other = report.sender.incarnation
        me = self._identity.sender.incarnation
        names_us = report.rival == me
        if report.claim is Claim.YIELDED:
            # Where both yielded, one takes the name back.
            is_ours = self.yielded_at is not None and names_us and me < other
            return Ruling.BACK if is_ours else Ruling.NONE
        self._rival, self._rival_heard_at = other, now
        if self.is_lost:
            return Ruling.NONE
        if not names_us:
            return Ruling.ANSWER
        is_known = self.is_contested(now)
        self._proven_at = now
        if (report.claim, other) < (self.claim(now), me):
            return Ruling.REFUSED if self._is_new(now) else Ruling.YIELD
        return Ruling.ANSWER if is_known else Ruling.CONFLICT

    def _part(self, other: int) -> Ruling:
        """Hear another incarnation's goodbye."""
        if other != self._rival:
            return Ruling.NONE
        if self.yielded_at is not None:
            return Ruling.BACK
        self._rival_heard_at = self._proven_at = None
        return Ruling.NONE

    def _is_within_expiry(self, at: Nanos | None, now: Nanos) -> bool:
        return at is not None and now - at <= self._expiry_ns

    def _is_new(self, now: Nanos) -> bool:
        return self._started_at is None or now - self._started_at < NEW_ROUNDS * self._round_ns
