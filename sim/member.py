"""What stands at a place in the world: a brain with rules, and what the world keeps about it.

A `Brain` is the rules of one member: events in, effects out, and a fast path for requests. The
daemon's own core is one (`CoreBrain`); rivals to compare it with (`sim.rivals`) are others, under
the same clock, network and load.

Law: the world never looks into a brain or a message; what a brain publishes comes back, with numbers
for names, in `MessageReceived` of everybody who hears it, the sender too. Times that a brain sees are those of
its own monotonic clock (`sim.clock`), never the world's.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, Append, Effect, Halt, Remember
from rgd.core.broker.events import Event
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_shares import Phase
from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Answer, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.exchange.columns import Ints
from rgd.core.exchange.messages import Message, Report, RoundRecord
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.shards import WHOLE, Shard, shard_of
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.units import Dimension, Nanos
from sim.clock import Clock
from sim.shared_work import SharedWork

NO_NUMBERS: Final[Ints] = np.zeros(0, np.int64)


class Gate(Protocol):
    """The fast path: plain calls that decide requests."""

    def acquire(self, request: Request, now: Nanos) -> Answer:
        """Decide one request."""
        ...


class Brain(Protocol):
    """The rules of one member."""

    @property
    def limiter(self) -> Gate:
        """Where requests are decided."""
        ...

    @property
    def wake_at(self) -> Nanos | None:
        """When `Woken` is due next, by the brain's own clock; None: never, as things stand."""
        ...

    def handle(self, event: Event) -> Sequence[Effect]:
        """Let an event happen (policies, start, wake, message, stop); what the world should do."""
        ...

    def listen(self, on_news: Callable[[], None]) -> None:
        """Ask for a call when a decision changed `wake_at`; a brain may never call."""
        ...

    def share(self, key: GroupKey) -> Rates | None:
        """The share in force, Milli per second; None where the group is not in use here."""
        ...

    def shares(self, key: GroupKey) -> Mapping[str, Rates] | None:
        """What it computes every broker's share to be; None where it believes nobody just now, or has yet to compute."""
        ...

    def tokens(self, key: GroupKey, now: Nanos) -> tuple[float, float]:
        """Messages and bytes in the group's buckets, 0 where in debt, unlimited or not in use."""
        ...

    def validate(self) -> None:
        """Check what must always hold.

        Raises:
            InvariantBroken: it does not; a bug.
        """
        ...


def share_in(limiter: Limiter, key: GroupKey) -> Rates | None:
    """`Brain.share`, where decisions are a limiter's."""
    state = limiter.state(key)
    return None if state is None else state.share


def tokens_in(limiter: Limiter, key: GroupKey, now: Nanos) -> tuple[float, float]:
    """`Brain.tokens`, where decisions are a limiter's."""
    state = limiter.state(key)
    if state is None:
        return 0.0, 0.0
    messages, size = state.tokens(Dimension.MESSAGES, now), state.tokens(Dimension.BYTES, now)
    return max(0, messages or 0) / PICO, max(0, size or 0) / PICO


class CoreBrain:
    """The daemon's own core."""

    def __init__(
        self,
        settings: BrokerSettings,
        now: Nanos,
        shared: SharedWork | None = None,
        gate: LocalGate | None = None,
    ) -> None:
        self._shared = shared
        self.put(Broker(settings, now, gate))
        self.limiter = self.broker.limiter

    def put(self, broker: Broker) -> None:
        """Be led by a broker."""
        self.broker = broker
        if self._shared is not None:
            broker.sharing.broker_index.divide = self._shared.divide

    def handle(self, event: Event) -> Sequence[Effect]:
        return self.broker.handle(event)

    def validate(self) -> None:
        self.broker.validate()

    @property
    def wake_at(self) -> Nanos | None:
        return self.broker.wake_at

    def listen(self, on_news: Callable[[], None]) -> None:
        self.limiter.news.on_news = on_news

    def share(self, key: GroupKey) -> Rates | None:
        return share_in(self.limiter, key)

    def shares(self, key: GroupKey) -> Mapping[str, Rates] | None:
        sharing, shards = self.broker.sharing, self.broker.settings.shards
        phase = sharing.shards.phases[shard_of(key.group, shards).number]
        if self.broker.mode is not Mode.LIVE or phase != Phase.WARM:
            return None
        if sharing.has_marks:
            # Its map is ahead of some share for as long as slices rest, some microseconds.
            return None
        return self.broker.shares(key)

    def tokens(self, key: GroupKey, now: Nanos) -> tuple[float, float]:
        return tokens_in(self.limiter, key, now)


class Dictionary:
    """The numbers that a member's messages have in place of names, as on the wire.

    (`rgd.wire.name_dictionary`; here a receiver never misses a name.)
    """

    def __init__(self) -> None:
        self._table: list[str] = []
        self._numbers: dict[str, int] = {}
        #: The names of the last report: most reports are of the same groups.
        self._last: tuple[Sequence[str], NumberedNames] = (), NumberedNames((), NO_NUMBERS)

    def encode(self, message: Message) -> Message:
        """The message with numbers."""
        if not isinstance(message, Report) or not len(message.rows):
            return message
        groups = message.rows.groups
        if groups != self._last[0]:
            numbers = np.array([self._number_of(group) for group in groups], np.int64)
            self._last = groups, NumberedNames(self._table, numbers)
        return replace(message, rows=replace(message.rows, groups=self._last[1]))

    def _number_of(self, group: str) -> int:
        number = self._numbers.setdefault(group, len(self._table))
        if number == len(self._table):
            self._table.append(group)
        return number


class Member:
    """One place in the world, with what its brain asked the world to keep."""

    def __init__(self, name: str, brain: Brain, clock: Clock) -> None:
        #: Its address in the world: its broker's name, unless two members use that.
        self.name = name
        self.brain = brain
        self.clock = clock
        self._dictionaries: defaultdict[Shard, Dictionary] = defaultdict(Dictionary)
        self.records: list[RoundRecord] = []
        #: World time of each record.
        self.recorded_at: list[int] = []
        self.alarms: list[Alarm] = []
        self.remembered: tuple[str, ...] = ()
        #: The shards that it receives.
        self.shards: frozenset[Shard] = frozenset()
        self.halted: str | None = None
        #: False before the start, after a crash, and after a goodbye.
        self.is_up = False
        #: Until when (world time) nothing happens here, as when a virtual machine is paused.
        self.frozen_until = 0
        #: World time of the wake-up that is on the agenda.
        self.next_wake: int | None = None

    def encoded(self, message: Message) -> Message:
        """A message as it is sent, with numbers of its shard."""
        shard = message.shard if isinstance(message, Report) else WHOLE
        return self._dictionaries[shard].encode(message)

    def receives(self, message: Message) -> bool:
        """Whether it reads the topic of a message."""
        shard = message.shard if isinstance(message, Report) else WHOLE
        return shard == WHOLE or shard in self.shards

    def keep(self, effect: Append | Remember | Alarm | Halt, now: int) -> None:
        """Keep what the brain wants to be kept, or told."""
        match effect:
            case Append(record):
                self.records.append(record)
                self.recorded_at.append(now)
            case Remember(peers):
                self.remembered = peers
            case Alarm():
                self.alarms.append(effect)
            case Halt(reason):
                self.halted = reason

    @property
    def is_live(self) -> bool:
        """Whether it takes part: up, and not refused for its name."""
        return self.is_up and self.halted is None

    @property
    def broker(self) -> Broker:
        """The core, where the brain is the core."""
        if not isinstance(self.brain, CoreBrain):
            raise TypeError(f"{self.name} does not run the core")
        return self.brain.broker
