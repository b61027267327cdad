"""Handles messages under this broker's name: its own, and those of another daemon.

Law: messages of others under the name change this broker's state only by the rules of `name_claim`,
and the answers are bounded: one message every `min_interval`.
"""

from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Halt
from rgd.core.broker.exchange_state import ExchangeState
from rgd.core.broker.mode import Signal
from rgd.core.broker.name_claim import Ruling
from rgd.core.broker.publisher import Publisher, Sources
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import NO_USAGE
from rgd.core.exchange.messages import Ask, Hello, Message, Report
from rgd.core.exchange.shards import WHOLE
from rgd.core.units import Nanos

#: The consequence for the daemon that yields, in alarms.
_YIELDS: Final = (
    "this one was stopped or cut off, or drew the higher number: it stays on its floor "
    "and ends after {rounds} rounds"
)


class OwnName:
    """Handles this broker's own messages, and those of others under its name."""

    def __init__(
        self,
        settings: BrokerSettings,
        sources: Sources,
        exchange_state: ExchangeState,
        publisher: Publisher,
    ) -> None:
        self._settings = settings
        self._name = settings.sender.broker
        self._identity = sources.identity
        self._claim = sources.name
        self._link = sources.link
        self._membership = sources.membership
        self._exchange_state = exchange_state
        self._publisher = publisher
        self._shards = sources.shards
        self._shard_reader = sources.shard_reader

    @property
    def due_at(self) -> Nanos | None:
        """When `check` has something to do."""
        return self._claim.due_at

    @property
    def trouble(self) -> str | None:
        """Why requests should not be sent to this daemon; None where they may."""
        return self._taken if self._claim.is_lost else None

    def check(self, now: Nanos) -> list[Effect]:
        """Do what is due."""
        return self._rule(self._claim.check(now), now)

    def read_back(self, message: Message, now: Nanos) -> list[Effect]:
        """Handle a message in this broker's name and incarnation."""
        is_recent = False
        if isinstance(message, Report) and not self._identity.has_sent(message):
            return []
        if isinstance(message, Report) and message.shard != WHOLE:
            self._shard_reader.read_back(message, now)
        elif isinstance(message, Report):
            is_recent = self._link.received(message.sequence, now)
            if not self._membership.read_back(message, now) and not message.full:
                # An earlier report did not come back, so this broker's copy of its rows may differ
                # from the peers' copies; it sends its full state.
                self._shards.answer_from(WHOLE, now)
        elif isinstance(message, Hello) or (
            isinstance(message, Ask) and message.broker == self._name
        ):
            is_recent = self._link.received(0, now)
        return self.come_back(Signal.BACK, now) if is_recent else []

    def receive(self, message: Message, now: Nanos) -> list[Effect]:
        """Handle a message of another daemon under this name."""
        return self._rule(self._claim.meet(message, now), now)

    def come_back(self, signal: Signal, now: Nanos) -> list[Effect]:
        """Rejoin the exchange if the signal calls for it: send a hello, and claim `RETURNING`.

        Peers may have dropped this broker, and another daemon may have taken its name.
        """
        rejoined = self._exchange_state.take(signal, now)
        if not rejoined:
            return []
        self._claim.doubt(now)
        asked = self._shard_reader.rejoin(now)
        return [*rejoined, self._publisher.hello(now), *asked]

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
                self._publisher.show_life(now)
                if ruling is Ruling.CONFLICT:
                    effects = [Alarm(AlarmCode.NAME_CONFLICT, self._name)]
            case Ruling.BACK:
                self._claim.take_back(now)
                self._exchange_state.take(Signal.NAME_BACK, now)
                effects = [Alarm(AlarmCode.NAME_BACK, self._name), self._publisher.hello(now)]
            case Ruling.YIELD:
                effects = self._yield(now)
            case Ruling.END:
                effects = self._end(now)
        return effects

    def _yield(self, now: Nanos) -> list[Effect]:
        self._claim.lose(now, ends=False)
        self._exchange_state.take(Signal.NAME_LOST, now)
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
        """Send at once that this daemon gives up the name, so that others know its owner."""
        return [self._publisher.report(NO_USAGE, now)] if self._claim.is_started else []
