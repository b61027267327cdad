"""Divides this broker's rows into the shards of every layout that a live member reads.

Laws:

- A layout is sent while a live member reads it, this broker included; of more than `LAYOUTS_MAX`, this broker's own and
  those with most readers.
- A shard's whole state is sent when a reader asks for it, at most `ANSWERS_A_ROUND` times a round.

With one shard everywhere nothing is divided, and `WHOLE` is that shard. `rgd.core.broker.publisher` makes the reports.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from rgd.core.broker.identity import Identity
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.shards import LAYOUTS_MAX, WHOLE, Shard, name_hash, numbers_of
from rgd.core.units import Nanos

#: How often in a round a broker sends the full state of all its rows or of one shard, at most.
ANSWERS_A_ROUND: Final = 4


class ShardSender:
    """What is due in each shard."""

    def __init__(
        self, settings: BrokerSettings, identity: Identity, rounds: Rounds, peers: Peers
    ) -> None:
        self.settings = settings
        self.identity = identity
        self._rounds = rounds
        self._peers = peers
        #: When the full state of a shard is due, and when it was sent last.
        self._due: dict[Shard, Nanos] = {}
        self._answered_at: dict[Shard, Nanos] = {}

    @property
    def layouts(self) -> tuple[int, ...]:
        """The layouts with shards that rows are sent in."""
        return tuple(layout for layout in self._read() if layout > 1)

    @property
    def is_whole(self) -> bool:
        """Whether rows are sent on the exchange's own topic."""
        return 1 in self._read()

    def _read(self) -> list[int]:
        own, counts = self.settings.shards, self._peers.readers()
        others = sorted(counts.keys() - {own}, key=lambda layout: (-counts[layout], layout))
        return [own, *others[: LAYOUTS_MAX - 1]]

    @property
    def sequences(self) -> tuple[tuple[int, ...], ...]:
        """Of each layout, the last sequence of each shard."""
        return tuple(self.identity.sequences(layout) for layout in self.layouts)

    def divided(self, rows: UsageColumns) -> Iterator[tuple[Shard, UsageColumns]]:
        """The rows of each shard that has any, in all layouts."""
        layouts = self.layouts
        if not layouts or not len(rows):
            return
        hashes = np.fromiter(map(name_hash, rows.groups), np.uint32, len(rows))
        for layout in layouts:
            numbers = numbers_of(hashes, layout)
            order = np.argsort(numbers, kind="stable")
            begins = np.flatnonzero(np.diff(numbers[order], prepend=-1))
            for some in np.split(order, begins[1:]):
                yield Shard(int(numbers[some[0]]), layout), rows.take(some)

    # Full states.

    @property
    def due_at(self) -> Nanos | None:
        """When the next full state is due, if at all."""
        return min(self._due.values()) if self._due else None

    def answer_from(self, shard: Shard, due: Nanos) -> None:
        """Make the full state of a shard due."""
        if not self._sends(shard) or self._rounds.is_resuming:
            return
        answered_at = self._answered_at.get(shard)
        if answered_at is not None:
            due = Nanos(max(due, answered_at + self.settings.round_ns // ANSWERS_A_ROUND))
        self._due[shard] = min(due, self._due.get(shard, due))

    def answer_all(self, due: Nanos) -> None:
        """Make the full state of all shards due."""
        for shard in self._shards():
            self.answer_from(shard, due)

    def abandon(self) -> None:
        """Drop the states that are due, because another daemon has the name."""
        self._due.clear()

    def next_due(self, now: Nanos) -> Shard | None:
        """A shard whose full state is to be sent now, if any."""
        self._due = {shard: at for shard, at in self._due.items() if self._sends(shard)}
        shard = min(self._due, key=self._due.__getitem__, default=None)
        if shard is None or self._due[shard] > now:
            return None
        del self._due[shard]
        self._answered_at[shard] = now
        return shard

    def _shards(self) -> Iterable[Shard]:
        layouts = (*self.layouts, 1) if self.is_whole else self.layouts
        return (Shard(number, layout) for layout in layouts for number in range(layout))

    def _sends(self, shard: Shard) -> bool:
        if shard == WHOLE:
            return self.is_whole
        return shard.of in self.layouts and shard.number < shard.of
