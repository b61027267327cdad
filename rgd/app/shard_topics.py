"""The topics of shards: those that this daemon reads, and those that it only writes to for others.

Laws:

- Each shard has an exchange and an outbox of its own, so one that cannot be reached holds up no other. Messages of all
  topics are taken one after the other, because they share one dictionary of names.
- The core says what is read (`Listen`), and hears of each shard when that can be read. A topic is written to from the
  first message on; one that is only written to is left `IDLE_S` after the last.
- At most `SHARDS_MAX` topics for each of `LAYOUTS_MAX` layouts are open.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from rgd.app.containment import InternalErrors
from rgd.app.traffic import CONNECTING, Traffic
from rgd.core.exchange.limits import SHARDS_MAX
from rgd.core.exchange.messages import Message
from rgd.core.exchange.shards import LAYOUTS_MAX, WHOLE, Shard
from rgd.ports.exchange import Exchange, Received
from rgd.wire.dialect import CompactDialect

#: How long a topic that is only written to is kept open after its last message.
IDLE_S: Final = 120.0

_TOPICS_MAX: Final = LAYOUTS_MAX * SHARDS_MAX

#: So many generations of its dictionary each topic has for itself before it meets those of the next.
_GENERATIONS: Final = 1 << 20


@dataclass(slots=True, eq=False)
class _Topic:
    """One shard's topic."""

    traffic: Traffic[Message]
    work: asyncio.Task[None]
    is_read: bool
    used_s: float


class ShardTopics:
    """The open topics.

    Args:
        make: makes the exchange of a shard; it is not open yet.
        take: takes a message of a shard that is read.
        opened: hears when a shard can be read.
        errors: counts what a task raises.
        outdated_s: as `rgd.app.outbox.Outbox`.
        joined: so many topics may have been joined under this incarnation before.
    """

    def __init__(
        self,
        make: Callable[[Shard], Exchange],
        *,
        take: Callable[[Received], None],
        opened: Callable[[Shard], None],
        errors: InternalErrors,
        outdated_s: float,
        joined: int = 0,
    ) -> None:
        self._outdated_s = outdated_s
        self._make = make
        self._take = take
        self._opened = opened
        self._errors = errors
        self._topics: dict[Shard, _Topic] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._dropped: Counter[str] = Counter()
        self._is_closed = False
        #: A generation of a dictionary is never used twice, also when a topic is left and joined again.
        self._first_generations = itertools.count(1 + joined * _GENERATIONS, _GENERATIONS)

    @property
    def trouble(self) -> str | None:
        """Why a shard cannot be reached; None if all can."""
        for shard, topic in self._topics.items():
            reason = topic.traffic.trouble
            if reason not in {None, CONNECTING}:
                return f"{_named(shard)}: {reason}"
        return None

    @property
    def dropped(self) -> Counter[str]:
        """Messages that were not sent or were dropped on the way, by reason; of all topics so far."""
        total = Counter(self._dropped)
        for topic in self._topics.values():
            total += topic.traffic.dropped
        return total

    def listen(self, shards: Collection[Shard]) -> None:
        """Read these shards from now on, and no others."""
        for shard in [one for one, topic in self._topics.items() if topic.is_read]:
            if shard not in shards:
                self._leave(shard)
        for shard in shards:
            known = self._topics.get(shard)
            if known is not None and not known.is_read:
                # It was opened for writing; its exchange dropped what it read.
                self._leave(shard)
            if shard not in self._topics:
                self._join(shard, is_read=True)

    def post(self, message: Message, shard: Shard) -> None:
        """Queue a message for a shard."""
        self.leave_idle(used=shard)
        topic = self._topics.get(shard)
        if topic is None:
            if self._is_closed or len(self._topics) >= _TOPICS_MAX:
                self._dropped["unsent"] += 1
                return
            topic = self._join(shard, is_read=False)
        topic.used_s = asyncio.get_running_loop().time()
        topic.traffic.post(message)

    async def close(self) -> None:
        """Leave all topics. Idempotent."""
        self._is_closed = True
        for shard in list(self._topics):
            self._leave(shard)
        if self._closing:
            await asyncio.wait(self._closing)

    def _join(self, shard: Shard, *, is_read: bool) -> _Topic:
        loop = asyncio.get_running_loop()
        traffic: Traffic[Message] = Traffic(
            self._make(shard),
            CompactDialect(first_generation=next(self._first_generations)),
            self._errors,
            self._outdated_s,
            name=_named(shard),
        )
        follow = (
            partial(self._read, shard, traffic) if is_read else partial(traffic.follow, _ignore)
        )
        work = loop.create_task(self._work(traffic, follow), name=_named(shard))
        topic = self._topics[shard] = _Topic(traffic, work, is_read, loop.time())
        return topic

    def _leave(self, shard: Shard) -> None:
        topic = self._topics.pop(shard)
        self._dropped += topic.traffic.dropped
        closing = asyncio.get_running_loop().create_task(self._close(topic))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def leave_idle(self, used: Shard = WHOLE) -> None:
        """Leave topics that are only written to, and were not for long, but not the one in use now."""
        now_s = asyncio.get_running_loop().time()
        for shard, topic in list(self._topics.items()):
            if not topic.is_read and shard != used and now_s - topic.used_s > IDLE_S:
                self._leave(shard)

    async def _close(self, topic: _Topic) -> None:
        topic.work.cancel()
        await asyncio.wait({topic.work})
        try:
            await topic.traffic.exchange.close()
        except Exception as error:  # noqa: BLE001 -- who leaves can do nothing about it
            self._errors.note("close", error, about="shard")

    async def _work(self, traffic: Traffic[Message], follow: Callable[[], Awaitable[None]]) -> None:
        """Reach a topic, send what waits for it, and take what comes from it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._errors.keep("shard_send", traffic.send))
            tasks.create_task(self._errors.keep("shard_read", follow))

    async def _read(self, shard: Shard, traffic: Traffic[Message]) -> None:
        if not traffic.is_reached:
            await traffic.reach()
            self._opened(shard)
        await traffic.follow(self._take)


def _ignore(_received: Received) -> None:
    """Of a topic that is only written to."""


def _named(shard: Shard) -> str:
    return f"shard {shard.number} of {shard.of}"
