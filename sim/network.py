"""How messages travel: who receives what, when, and how often.

Law: a sender receives its own messages the same way as everybody else. For one sender and one
receiver, messages stay in the order in which they were sent, as on a topic of Pulsar, where `is_ordered` is
on, but for those that straggle.

Everything here may be changed while a world runs; it holds for what is sent from then on. Chance is
the world's dice, and each receiver's fate is drawn by itself.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.units import NS_PER_MS


@dataclass(slots=True)
class Network:
    """The way of messages from every member to every other."""

    #: Least and greatest one-way delay.
    delay_min_ns: int = NS_PER_MS
    delay_max_ns: int = 20 * NS_PER_MS
    #: Part of the messages that is lost, 0 to 1.
    loss: float = 0.0
    #: Part of the messages that arrive twice, 0 to 1.
    duplication: float = 0.0
    #: Part of the messages that take up to `straggle_max_ns` longer and may be overtaken, 0 to 1.
    straggling: float = 0.0
    straggle_max_ns: int = 0
    #: Whether messages from one to another stay in order.
    is_ordered: bool = False
    #: Pairs (from, to) without messages.
    cut: set[tuple[str, str]] = field(default_factory=set)
    #: Shards whose topics nobody can write to.
    down: set[Shard] = field(default_factory=set)
    #: How much later than others a slow reader receives everything.
    slow_ns: dict[str, int] = field(default_factory=dict)
    #: How long it takes to begin to receive a shard.
    opening_ns: int = 20 * NS_PER_MS
    #: Latest arrival so far, for each (from, to); shards are topics of their own.
    _latest: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def is_uniform(self) -> bool:
        """Whether everybody receives everything after the same time."""
        return (
            self.delay_min_ns == self.delay_max_ns
            and not (self.loss or self.duplication or self.straggling)
            and not (self.cut or self.slow_ns or self.down)
        )

    def arrivals(
        self, now: int, sender: str, receivers: Iterable[str], dice: Random, shard: Shard = WHOLE
    ) -> Iterator[tuple[int, str]]:
        """When a message of a shard that is sent now reaches whom, if he reads it; each shard is ordered."""
        if shard in self.down:
            return
        topic = sender if shard == WHOLE else f"{sender} {shard.number}/{shard.of}"
        random, least = dice.random, self.delay_min_ns
        spread = self.delay_max_ns - least
        is_rough = bool(self.loss or self.duplication or self.straggling or self.cut)
        slow, latest, is_ordered = self.slow_ns, self._latest, self.is_ordered
        for name in receivers:
            moment = now + least + int(spread * random())
            if slow:
                moment += slow.get(name, 0)
            if is_rough:
                if (sender, name) not in self.cut:
                    yield from self._rough(moment, (topic, name), dice)
                continue
            if is_ordered:
                pair = (topic, name)
                if latest.get(pair, 0) > moment:
                    moment = latest[pair]
                latest[pair] = moment
            yield moment, name

    def _rough(self, moment: int, pair: tuple[str, str], dice: Random) -> Iterator[tuple[int, str]]:
        copies = 2 if self.duplication and dice.random() < self.duplication else 1
        for _ in range(copies):
            if self.loss and dice.random() < self.loss:
                continue
            if self.straggling and dice.random() < self.straggling:
                yield moment + int(self.straggle_max_ns * dice.random()), pair[1]
                continue
            arrival = moment
            if self.is_ordered:
                arrival = self._latest[pair] = max(self._latest.get(pair, 0), moment)
            yield arrival, pair[1]
