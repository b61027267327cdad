"""A Sharing with what it reads, for tests of sharing."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from typing_extensions import override

from rgd.core.broker.link import Link
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import BucketSettings
from rgd.core.exchange.columns import Ints
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import OwnRates
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Nanos
from tests.unit.core.values import key, ms, rates, report

SETTINGS = BrokerSettings(Sender("b1", 1), floor_ppm=10_000)
START = Nanos(0)


class RecordingGate(LocalGate):
    """Keeps what it is told of groups.

    Args:
        keys: the groups by slot id.
    """

    def __init__(self, keys: list[GroupKey]) -> None:
        super().__init__(BucketSettings(0, 0, 0))
        self.keys = keys
        self.applied: list[tuple[GroupKey, Rates, Nanos]] = []
        self.dropped: list[GroupKey] = []

    @override
    def set_shares(self, shares: Iterable[tuple[int, Rates]], now: Nanos) -> None:
        self.applied += [(self.keys[slot], share, now) for slot, share in shares]

    @override
    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        self.applied.append((key, share, now))

    @override
    def drop(self, keys: Iterable[GroupKey]) -> None:
        self.dropped += keys


@dataclass
class House:
    """A Sharing with what it reads, and what it told the gate."""

    settings: BrokerSettings = SETTINGS
    usage: UsageMap = field(default_factory=UsageMap)
    peers: Peers = field(default_factory=lambda: Peers(0))
    link: Link = field(default_factory=lambda: Link(ms(1100), ms(100)))

    def __post_init__(self) -> None:
        self.gate = RecordingGate(self.usage.index.keys)
        self.sharing = Sharing(self.settings, self.usage, self.peers, self.link, self.gate)
        self.applied = self.gate.applied
        self.sharing.mode = Mode.LIVE

    def quota(
        self, messages: float | None = 100, size: float | None = None, at: float = 0
    ) -> Group:
        """Put a group of this quota in force, in place of every other."""
        group = Group("gold", Limit(rates(messages, size), rates(messages, size)))
        self.change(group, at=at)
        return group

    def change(self, *groups: Group, at: float = 0) -> None:
        """Put these groups in force, in place of every other."""
        snapshot = PolicySnapshot({group.name: group for group in groups})
        self.sharing.share_out(self.sharing.set_policies(snapshot), ms(at))
        self.catch_up(at)

    def catch_up(self, at: float) -> None:
        """Have all that is marked shared out."""
        while self.sharing.has_marks:
            self.sharing.work(ms(at))

    def refresh(self, *keys: GroupKey, at: float) -> None:
        """Have the shares of these groups reckoned anew."""
        self.sharing.refresh(self.slots(*keys), ms(at))
        self.catch_up(at)

    def refresh_all(self, at: float) -> None:
        """Have every share reckoned anew."""
        self.sharing.refresh_all(ms(at))
        self.catch_up(at)

    def slots(self, *keys: GroupKey) -> Ints:
        """Where groups are in columns."""
        return np.array([self.usage.index.slot(one) for one in keys], np.int64)

    def moves_share(self, before: UsageRow, after: UsageRow) -> bool:
        """Whether anybody's share of the group moves, if our row changed so."""
        pairs = [
            OwnRates(np.array([row.admitted]), np.array([row.wanted])) for row in (before, after)
        ]
        (moves,) = self.sharing.moves_share(self.slots(key()), *pairs).tolist()
        return bool(moves)

    def use(self, messages: float | None = 100, size: float | None = None) -> Rates:
        """Ask for the group for the first time."""
        return self.sharing.first_share(self.quota(messages, size), Kind.PUBLISH, START)[1]

    def peer(self, *rows: UsageRow) -> None:
        """Let a peer tell rows."""
        told = report("b2", *rows)
        self.peers.receive(told.sender, START)
        self.peers.advance(told)
        self.usage.apply(told)
        self.refresh_all(0)

    def due(self) -> Nanos | None:
        """When the next raise comes into force."""
        return self.sharing.due_at

    def own(self, *rows: UsageRow) -> None:
        """Read our own rows back."""
        self.usage.apply(report("b1", *rows))
