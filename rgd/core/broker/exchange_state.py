"""The exchange state of this broker: whether it uses the usage map, and when that changes.

Law: shares from the usage map are granted only while this broker's own messages come back.

- Starting: it grants its floor until the peers have answered its hello or two rounds are over.
- Live: it grants its shares from the map.
- Isolated: its messages stopped coming back. It keeps its shares for `isolation_hold_rounds` (the
  isolation hold), then acts as `exchange.on_isolation` says.
- Rejoining: its messages come back. During the isolation hold it uses the map again at once; later
  it grants its equal part until the peers have sent their state.
- Yielding: it yielded its name to another daemon and grants its floor (`name_claim`).

Only a message that was sent within the patience (`Link`) counts as coming back, and a broker
rejoins at most once a round, so a delayed link that delivers old messages changes nothing.
`rgd.core.broker.sharing` computes what each mode grants.
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

#: Rounds for which a starting broker waits for answers to its hello (design 3).
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
        #: When this broker last rejoined.
        self._rejoined_at: Nanos | None = None
        #: When the isolation hold ends.
        self._hold_until: Nanos | None = None
        self._become(Mode.STARTING, now)

    @property
    def due_at(self) -> Nanos | None:
        """When `check` will change the mode if no message is received until then."""
        if self._sharing.mode is Mode.LIVE:
            return self._link.silent_at
        if self._sharing.mode is Mode.HOLDING:
            return self._hold_until
        if not self._sharing.mode.is_waiting or self._link.reached_at is None:
            return None
        wait_ns = self._listen_ns if self._membership.is_complete else self._hello_ns
        ends_at = Nanos(self._link.reached_at + wait_ns)
        # Not while a message is so late that the exchange may be unreachable again.
        return None if self._link.is_late(ends_at) else ends_at

    def is_past_start(self, now: Nanos) -> bool:
        """Whether shares are known, or the exchange is unreachable two rounds after the start."""
        if self._sharing.mode is not Mode.STARTING:
            return True
        return not self._is_reached(now) and self._has_waited(now)

    def start(self, now: Nanos) -> None:
        """Begin to wait for the peers' answers."""
        self.started_at = now

    def check(self, now: Nanos) -> list[Effect]:
        """Change the mode where its time is over."""
        alarms: list[Effect] = []
        if self._sharing.mode is Mode.LIVE and self._is_due(now):
            self._hold_until = self._hold_end(now)
            self._become(Mode.HOLDING, now)
            alarms.append(Alarm(AlarmCode.ISOLATED))
        # After a long suspension the isolation hold may be over as it begins.
        if self._sharing.mode is Mode.HOLDING and self._is_due(now):
            self._become(Mode(self._settings.on_isolation), now)
        return alarms + self.maybe_go_live(now)

    def maybe_go_live(self, now: Nanos) -> list[Effect]:
        """End the wait for the peers' states if all have answered, or time is over."""
        if not self._sharing.mode.is_waiting:
            return []
        if self._is_reached(now):
            is_back = self._sharing.mode is Mode.REJOINING and self._membership.is_complete
            if is_back or self._is_due(now):
                self._become(Mode.LIVE, now)
            return []
        if self._sharing.mode is Mode.REJOINING:
            # The exchange became unreachable before the peers answered.
            self._become(Mode(self._settings.on_isolation), now)
            return [Alarm(AlarmCode.ISOLATED)]
        if self._sharing.known_brokers() == 1 or not self._has_waited(now):
            # This broker knows no peers, so it cannot tell how many there are: it grants its floor.
            return []
        self._become(Mode(self._settings.on_isolation), now)
        return [Alarm(AlarmCode.ISOLATED)]

    def rejoin(self, now: Nanos) -> list[Effect]:
        """Use the map again because messages come back; after the hold, wait for new states first.

        Returns:
            An alarm where this broker rejoins.
        """
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
        """This broker was suspended so long that the peers dropped it: wait for their states."""
        if self._sharing.mode is not Mode.LIVE:
            return []
        self._membership.await_everybody(now)
        self._ask_again(now)
        return [Alarm(AlarmCode.REJOINED)]

    def recover(self, now: Nanos) -> None:
        """Set the buckets' depth to that of the mode, because a fault may have left another."""
        self._limiter.set_group_burst(self._burst_ns, now)

    @property
    def _burst_ns(self) -> int:
        # A daemon that knows no peers yet grants no bursts, because N daemons might do so at once.
        return 0 if self._sharing.mode.is_on_floor else self._settings.burst_ns

    def yield_name(self, now: Nanos) -> None:
        """Grant the floor only, because another daemon has this broker's name."""
        self._become(Mode.YIELDING, now)

    def take_back(self, now: Nanos) -> None:
        """The name is this broker's again: wait for the peers' states."""
        self._membership.await_everybody(now)
        self._ask_again(now)

    def _has_just_rejoined(self, now: Nanos) -> bool:
        at = self._rejoined_at
        return at is not None and now - at < self._settings.round_ns

    def _ask_again(self, now: Nanos) -> None:
        self._link.restart(now)
        self._become(Mode.REJOINING, now)

    def _hold_end(self, now: Nanos) -> Nanos:
        """When the isolation hold ends: at the latest when the peers expire this broker."""
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
