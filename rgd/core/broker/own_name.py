"""What a broker does about its own name: another daemon uses it, or somebody writes in it.

Law: whoever forges a message in our name, or uses it too, moves our state by the
rules of `name_claim` and `identity` alone, and what we answer is bounded: a message
every `min_interval`, and another incarnation a round.

Against forgers: what is received under our name and incarnation that we did not
send makes us take another incarnation. The one before says goodbye, so the peers
drop what was forged, and the new one says hello and tells everything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Halt, Publish
from rgd.core.broker.exchange_state import ExchangeState
from rgd.core.broker.identity import Identity
from rgd.core.broker.name_claim import NameClaim, Ruling
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Goodbye, Message
from rgd.core.units import Nanos

#: What follows for the daemon that yields.
_YIELDS: Final = (
    "this one was stopped or cut off, or drew the higher number: it stays on its floor "
    "and ends after {rounds} rounds"
)


@dataclass(frozen=True, slots=True)
class Voice:
    """How a broker speaks."""

    #: Let a message of ours be due soon, any will do.
    show_life: Callable[[Nanos], None]
    hello: Callable[[Nanos], Effect]
    #: A report without rows.
    heartbeat: Callable[[Nanos], Effect]
    #: All rows, in as many reports as they need: the first of them.
    everything: Callable[[Nanos], list[Effect]]


class OwnName:
    """Carries out what `NameClaim` rules and `Identity` finds."""

    def __init__(
        self,
        settings: BrokerSettings,
        identity: Identity,
        claim: NameClaim,
        exchange_state: ExchangeState,
        voice: Voice,
    ) -> None:
        self._settings = settings
        self._name = settings.sender.broker
        self._identity = identity
        self._claim = claim
        self._exchange_state = exchange_state
        self._voice = voice
        #: When another incarnation is due, and was taken last.
        self._renew_at: Nanos | None = None
        self._renewed_at: Nanos | None = None

    @property
    def due_at(self) -> Nanos | None:
        """When `check` has something to do."""
        due = [at for at in (self._renew_at, self._claim.due_at) if at is not None]
        return min(due, default=None)

    @property
    def trouble(self) -> str | None:
        """Why this daemon is not to be asked."""
        return self._taken if self._claim.is_lost else None

    def check(self, now: Nanos) -> list[Effect]:
        """Do what is due."""
        effects = self._rule(self._claim.check(now), now)
        if self._renew_at is not None and now >= self._renew_at:
            effects += self._renew(now)
        return effects

    def hear(self, message: Message, now: Nanos) -> list[Effect]:
        """Hear another incarnation under our name: one that we had, or another daemon's."""
        if self._identity.is_former(message.sender):
            return self.catch_forger(now) if self._identity.is_forged(message) else []
        return self._rule(self._claim.meet(message, now), now)

    def catch_forger(self, now: Nanos) -> list[Effect]:
        """Somebody wrote in our name: what the peers hold of us may be his."""
        self._identity.forged_total += 1
        alarm = Alarm(AlarmCode.FORGED, self._name)
        if self._claim.is_lost or not self._claim.is_started:
            return [alarm]
        since = self._renewed_at
        if since is not None and now - since < self._settings.round_ns:
            # The forger may continue: at most one new incarnation a round.
            self._renew_at = Nanos(since + self._settings.round_ns)
            self._voice.show_life(now)
            return [alarm]
        return [alarm, *self._renew(now)]

    def come_back(self, rejoined: list[Effect], now: Nanos) -> list[Effect]:
        """Say hello where we are back after others may have forgotten us, or taken our name."""
        if not rejoined:
            return []
        self._claim.doubt(now)
        return [*rejoined, self._voice.hello(now)]

    @property
    def _taken(self) -> str:
        return (
            f"another daemon speaks for broker {self._name!r}: "
            "give this one another broker.name, or stop the other"
        )

    def _rule(self, ruling: Ruling, now: Nanos) -> list[Effect]:
        effects: list[Effect] = []
        match ruling:
            case Ruling.NONE:
                pass
            case Ruling.ANSWER | Ruling.CONFLICT:
                self._voice.show_life(now)
                if ruling is Ruling.CONFLICT:
                    effects = [Alarm(AlarmCode.NAME_CONFLICT, self._name)]
            case Ruling.BACK:
                self._claim.take_back(now)
                self._exchange_state.take_back(now)
                effects = [Alarm(AlarmCode.NAME_BACK, self._name), self._voice.hello(now)]
            case Ruling.YIELD:
                effects = self._yield(now)
            case Ruling.REFUSED | Ruling.END:
                effects = self._end(now)
        return effects

    def _yield(self, now: Nanos) -> list[Effect]:
        self._claim.lose(now, ends=False)
        self._exchange_state.yield_name(now)
        reason = f"{self._taken}; {_YIELDS.format(rounds=self._settings.yield_rounds)}"
        return [Alarm(AlarmCode.NAME_YIELDED, self._name, reason), *self._release(now)]

    def _end(self, now: Nanos) -> list[Effect]:
        was_lost = self._claim.is_lost
        self._claim.lose(now, ends=True)
        halt = Halt(self._taken)
        if was_lost:
            return [halt]
        return [Alarm(AlarmCode.NAME_CONFLICT, self._name), *self._release(now), halt]

    def _release(self, now: Nanos) -> list[Effect]:
        """Say at once that the name is not ours: whoever took us for its owner looks further."""
        self._renew_at = None
        return [self._voice.heartbeat(now)] if self._claim.is_started else []

    def _renew(self, now: Nanos) -> list[Effect]:
        """Take another incarnation, and tell everything in it."""
        self._renew_at, self._renewed_at = None, now
        goodbye = Publish(Goodbye(self._identity.sender))
        self._identity.renew()
        return [goodbye, self._voice.hello(now), *self._voice.everything(now)]
