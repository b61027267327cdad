"""How far this broker believes in the exchange, and when that changes.

Law: shares of the usage map are granted only while our own words come back.

Starting: it grants from its floor until the peers have answered its hello or
two rounds are over. Live: by the map. Once its words stop coming back it holds
its shares for `isolation_hold_rounds`, then acts as `exchange.on_isolation`
says; when they come back it believes the map again, or, after more than a hold,
grants its equal part until the peers have told their state. Only a message that
was sent within the patience counts as coming back, and a broker comes back at
most once a round, so a delayed link that lets old messages go changes nothing.
One that yielded its name to another daemon is on its floor (`name_claim`).
What each mode grants is `rgd.core.broker.sharing`'s business.
"""

from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect
from rgd.core.broker.link import Link
from rgd.core.broker.membership import Membership
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.limiter import Limiter
from rgd.core.units import Nanos

#: Rounds that a starting broker waits for answers to its hello (design 3).
HELLO_ROUNDS: Final = 2

#: Rounds before the owner of a name answers a duplicate's hello: longer than the last message of a
#: crashed broker can be in flight. A broker that starts listens for as long before it believes anybody.
NAME_CONFLICT_ROUNDS: Final = 0.5


class ExchangeState:
    """Moves `Sharing.mode`, and nobody else does."""

    def __init__(
        self,
        settings: BrokerSettings,
        link: Link,
        membership: Membership,
        *,
        sharing: Sharing,
        limiter: Limiter,
        now: Nanos,
    ) -> None:
        self._settings = settings
        self._link = link
        self._membership = membership
        self._sharing = sharing
        self._limiter = limiter
        self._hello_ns = HELLO_ROUNDS * settings.round_ns
        self._listen_ns = int(NAME_CONFLICT_ROUNDS * settings.round_ns) + settings.damping_max_ns
        self.started_at: Nanos | None = None
        #: When our messages came back last, after they did not.
        self._rejoined_at: Nanos | None = None
        #: When holding our shares ends, cut off.
        self._hold_until: Nanos | None = None
        self._become(Mode.STARTING, now)

    @property
    def due_at(self) -> Nanos | None:
        """When `check` will change the mode, if nothing is heard until then."""
        if self._sharing.mode is Mode.LIVE:
            return self._link.silent_at
        if self._sharing.mode is Mode.HOLDING:
            return self._hold_until
        if not self._sharing.mode.is_waiting or self._link.reached_at is None:
            return None
        wait_ns = self._listen_ns if self._membership.is_complete else self._hello_ns
        ends_at = Nanos(self._link.reached_at + wait_ns)
        # Not while something is on its way for so long that the exchange may be gone again.
        return None if self._link.is_late(ends_at) else ends_at

    def is_past_start(self, now: Nanos) -> bool:
        """Whether shares are known, or two rounds have shown that nobody will tell them."""
        if self._sharing.mode is not Mode.STARTING:
            return True
        return not self._is_reached(now) and self._has_waited(now)

    def start(self, now: Nanos) -> None:
        """Begin to wait for the peers."""
        self.started_at = now

    def check(self, now: Nanos) -> list[Effect]:
        """See whether time has changed the mode."""
        alarms: list[Effect] = []
        if self._sharing.mode is Mode.LIVE and self._is_due(now):
            self._hold_until = self._hold_end(now)
            self._become(Mode.HOLDING, now)
            alarms.append(Alarm(AlarmCode.ISOLATED))
        # After a long sleep holding may be over as it begins.
        if self._sharing.mode is Mode.HOLDING and self._is_due(now):
            self._become(Mode(self._settings.on_isolation), now)
        return alarms + self.maybe_go_live(now)

    def maybe_go_live(self, now: Nanos) -> list[Effect]:
        """End the start if everybody has answered, or nobody will."""
        if not self._sharing.mode.is_waiting:
            return []
        if self._is_reached(now):
            is_back = self._sharing.mode is Mode.REJOINING and self._membership.is_complete
            if is_back or self._is_due(now):
                self._become(Mode.LIVE, now)
            return []
        if self._sharing.mode is Mode.REJOINING:
            # Gone again before anybody answered: as it was before.
            self._become(Mode(self._settings.on_isolation), now)
            return [Alarm(AlarmCode.ISOLATED)]
        if self._sharing.known_brokers() == 1 or not self._has_waited(now):
            # Who knows of nobody cannot tell how many there are: its floor is all it may grant.
            return []
        self._become(Mode(self._settings.on_isolation), now)
        return [Alarm(AlarmCode.ISOLATED)]

    def rejoin(self, now: Nanos) -> list[Effect]:
        """Our words come back: believe the map again, or ask first if we were away for long."""
        if not self._sharing.mode.is_isolated or self._has_just_rejoined(now):
            return []
        self._rejoined_at = now
        was_holding = self._sharing.mode is Mode.HOLDING
        self._membership.await_everybody(now)
        if was_holding:
            self._become(Mode.LIVE, now)
        else:
            self._ask_again(now)
        return [Alarm(AlarmCode.REJOINED)]

    def doubt(self, now: Nanos) -> list[Effect]:
        """We stood still for so long that the others have forgotten us: ask first."""
        if self._sharing.mode is not Mode.LIVE:
            return []
        self._membership.await_everybody(now)
        self._ask_again(now)
        return [Alarm(AlarmCode.REJOINED)]

    def recover(self, now: Nanos) -> None:
        """Have the buckets' depth be that of the mode: a fault may have come between them."""
        self._limiter.set_group_burst(self._burst_ns, now)

    @property
    def _burst_ns(self) -> int:
        # A daemon that knows of nobody yet grants no bursts: N of them might.
        return 0 if self._sharing.mode.is_on_floor else self._settings.burst_ns

    def yield_name(self, now: Nanos) -> None:
        """Another daemon has our name."""
        self._become(Mode.YIELDING, now)

    def take_back(self, now: Nanos) -> None:
        """Our name is ours again: ask the others first."""
        self._membership.await_everybody(now)
        self._ask_again(now)

    def _has_just_rejoined(self, now: Nanos) -> bool:
        at = self._rejoined_at
        return at is not None and now - at < self._settings.round_ns

    def _ask_again(self, now: Nanos) -> None:
        self._link.restart(now)
        self._become(Mode.REJOINING, now)

    def _hold_end(self, now: Nanos) -> Nanos:
        """Until when to hold: never longer than until the others give us up."""
        settings = self._settings
        hold_until = now + settings.isolation_hold_rounds * settings.round_ns
        received_at = self._link.received_at or now
        expiry_ns = settings.expiry_rounds * settings.round_ns + settings.damping_max_ns
        return Nanos(min(hold_until, received_at + expiry_ns))

    def _is_due(self, now: Nanos) -> bool:
        due_at = self.due_at
        return due_at is not None and now >= due_at

    def _is_reached(self, now: Nanos) -> bool:
        return self._link.reached_at is not None and not self._link.is_silent(now)

    def _has_waited(self, now: Nanos) -> bool:
        return self.started_at is not None and now - self.started_at >= self._hello_ns

    def _become(self, mode: Mode, now: Nanos) -> None:
        self._sharing.mode = mode
        self._limiter.set_group_burst(self._burst_ns, now)
        self._sharing.refresh_all(now)
