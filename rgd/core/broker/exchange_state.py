"""Finds out how far this broker can rely on the exchange, and changes its mode accordingly.

`rgd.core.broker.mode` has the table of all transitions; here are the signals and their times.

Only a message that was sent within the patience (`Link`) counts as coming back, and a broker
rejoins at most once a round, so a delayed link that delivers old messages changes nothing.
"""

from typing import Final

from rgd.core.broker.effects import Alarm, Effect
from rgd.core.broker.link import Link
from rgd.core.broker.membership import Membership
from rgd.core.broker.mode import TRANSITIONS, Mode, Signal
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.units import Nanos

#: Rounds for which a broker waits for its peers' states.
HELLO_ROUNDS: Final = 2

#: Rounds before the owner of a name answers the hello of a duplicate: longer than the last message
#: of a crashed broker can be in flight. A starting broker listens for as long before it uses the
#: map.
NAME_CONFLICT_ROUNDS: Final = 0.5


class ExchangeState:
    """Sets `Sharing.mode`; no other class does."""

    def __init__(
        self,
        settings: BrokerSettings,
        link: Link,
        membership: Membership,
        *,
        sharing: Sharing,
        now: Nanos,
    ) -> None:
        self._settings = settings
        self._link = link
        self._membership = membership
        self._sharing = sharing
        # With another plane's shares it can wait for a peer until every other broker has dropped it, too.
        wait_ns = HELLO_ROUNDS * settings.round_ns
        self._hello_ns = settings.expiry_ns if sharing.resumes else wait_ns
        self._listen_ns = int(NAME_CONFLICT_ROUNDS * settings.round_ns) + settings.damping_max_ns
        self._started_at: Nanos | None = None
        #: When a message of this broker last came back after an isolation.
        self._back_at: Nanos | None = None
        #: When the isolation hold ends.
        self._hold_until: Nanos | None = None
        #: Time of the last `check`.
        self._checked_at = now
        self._become(Mode.STARTING, now)

    @property
    def due_at(self) -> Nanos | None:
        """When `check` will change the mode if no message is received until then."""
        mode = self._sharing.mode
        if mode is Mode.LIVE:
            return self._link.silent_at
        if mode is Mode.HOLDING:
            return self._hold_until
        if not mode.is_waiting or self._link.reached_at is None:
            return None
        if self._link.is_silent(self._checked_at):
            # The process was suspended until now: woken again at once, it would find the same for ever.
            return None
        wait_ns = self._listen_ns if self._membership.is_complete else self._hello_ns
        ends_at = Nanos(self._link.reached_at + wait_ns)
        # Not while a message is so late that the exchange may be unreachable again.
        return None if self._link.is_late(ends_at) else ends_at

    def is_past_start(self, now: Nanos) -> bool:
        """Whether shares are known, or the exchange is unreachable two rounds after the start."""
        if self._sharing.mode is not Mode.STARTING or self._sharing.resumes:
            return True
        return not self._is_reached(now) and self._has_waited(now)

    def start(self, now: Nanos) -> None:
        """Begin to wait for the peers' answers."""
        self._started_at = now

    def check(self, now: Nanos) -> list[Effect]:
        """Change the mode where it is due; after a long suspension twice, as a hold begins and ends."""
        self._checked_at = now
        effects: list[Effect] = []
        while (signal := self._signal(now)) is not None:
            effects += self.take(signal, now)
        return effects

    def check_answers(self, now: Nanos) -> list[Effect]:
        """End the wait for the peers' states if a message completed them."""
        return self.check(now) if self._sharing.mode.is_waiting else []

    def wait_again(self, now: Nanos) -> bool:
        """Wait as long again for the peers' states, because answers may be lost; returns whether it waits for them."""
        if not self._sharing.mode.is_waiting or self._link.reached_at is None:
            return False
        self._membership.await_everybody(now)
        self._link.restart(now)
        return True

    def take(self, signal: Signal, now: Nanos) -> list[Effect]:
        """Follow the table of transitions.

        Returns:
            The transition's alarm, if it has one.
        """
        transition = TRANSITIONS.get((self._sharing.mode, signal))
        if transition is None:
            return []
        if signal is Signal.BACK:
            if self._back_at is not None and now - self._back_at < self._settings.round_ns:
                return []
            self._back_at = now
        if transition.expects_states:
            self._membership.await_everybody(now)
        mode = transition.mode or Mode(self._settings.on_isolation)
        # While it waits for the peers its map lacks them, so there are no shares to hold.
        is_equal = mode is Mode.HOLD and self._sharing.mode.is_waiting
        self._become(Mode.EQUAL if is_equal else mode, now)
        return [] if transition.alarm is None else [Alarm(transition.alarm)]

    def _signal(self, now: Nanos) -> Signal | None:
        """The signal that time or the peers' answers give in the present mode."""
        mode, due_at = self._sharing.mode, self.due_at
        is_due = due_at is not None and now >= due_at
        if mode is Mode.HOLDING:
            return Signal.HOLD_OVER if is_due else None
        if not mode.is_waiting:
            return Signal.SILENT if is_due else None
        if self._is_reached(now):
            has_all = mode is Mode.REJOINING and self._membership.is_complete
            return Signal.ANSWERED if has_all or is_due else None
        if mode is Mode.STARTING and (
            self._sharing.known_brokers() == 1 or not self._has_waited(now)
        ):
            # A broker that knows no peers cannot tell how many there are: it grants its floor.
            return None
        return Signal.SILENT

    def _hold_end(self, now: Nanos) -> Nanos:
        """When the isolation hold ends: at the latest when the peers expire this broker."""
        settings = self._settings
        hold_until = now + settings.isolation_hold_rounds * settings.round_ns
        received_at = self._link.received_at or now
        return Nanos(min(hold_until, received_at + settings.expiry_ns))

    def _is_reached(self, now: Nanos) -> bool:
        return self._link.reached_at is not None and not self._link.is_silent(now)

    def _has_waited(self, now: Nanos) -> bool:
        return self._started_at is not None and now - self._started_at >= self._hello_ns

    def _become(self, mode: Mode, now: Nanos) -> None:
        if mode is Mode.HOLDING:
            self._hold_until = self._hold_end(now)
        elif mode is Mode.REJOINING:
            self._link.restart(now)
        self._sharing.become(mode, now)
