"""From the usage map to the shares in force on this broker.

Laws (design 3): the same map gives every daemon the same shares; cuts apply at
once and raises only after the link's `settle_ns`, because maps differ while
reports travel (law 6). So the rate in force is the least of the targets of the
last `settle_ns`, a sliding minimum.

What a share is depends on the mode: nothing is believed of the others while
starting (the floor only) or while cut off (`exchange.on_isolation`).
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum

from rgd.core.broker.link import Link
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import UsageRow
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import BLOCKED, UNLIMITED, Group, Rate, Rates
from rgd.core.shares.apportion import even, floors
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import Dimension, Kind, Nanos


class Mode(StrEnum):
    """What a broker believes of the others."""

    #: Nothing yet: it grants from its floor.
    STARTING = "starting"
    #: The usage map.
    LIVE = "live"
    #: Just cut off: the usage map as it was.
    HOLDING = "holding"
    #: Cut off for longer: `exchange.on_isolation`.
    EQUAL = "equal"
    HOLD = "hold"
    OPEN = "open"

    @property
    def is_isolated(self) -> bool:
        """Whether the exchange is out of reach."""
        return self not in (Mode.STARTING, Mode.LIVE)


class SettlingRate:
    """The least of the targets of the last `settle_ns`: cuts at once, raises later."""

    __slots__ = ("_targets",)

    def __init__(self, rate: Rate, now: Nanos) -> None:
        #: (from when, target), targets rising; the first is in force.
        self._targets: deque[tuple[Nanos, Rate]] = deque([(now, rate)])

    @property
    def target(self) -> Rate:
        """What it settles on."""
        return self._targets[-1][1]

    def aim(self, rate: Rate, now: Nanos) -> None:
        """Set a new target; higher ones that have not come into force yet are forgotten."""
        since = now
        while self._targets and _ceiling(self._targets[-1][1]) >= _ceiling(rate):
            # A raise that shrinks, or is told again, has waited as long as the one before.
            since, _ = self._targets.pop()
        self._targets.append((since, rate))

    def at(self, now: Nanos, settle_ns: int) -> Rate:
        """The rate in force."""
        while len(self._targets) > 1 and self._targets[1][0] + settle_ns <= now:
            self._targets.popleft()
        return self._targets[0][1]

    def next_at(self, settle_ns: int) -> Nanos | None:
        """When the rate in force rises, if nothing else happens."""
        return Nanos(self._targets[1][0] + settle_ns) if len(self._targets) > 1 else None


class Sharing:
    """This broker's shares; tells the limiter through `apply`."""

    def __init__(
        self,
        settings: BrokerSettings,
        usage: UsageMap,
        peers: Peers,
        link: Link,
        *,
        apply: Callable[[GroupKey, Rates, Nanos], None],
    ) -> None:
        self._settings = settings
        self._usage = usage
        self._peers = peers
        self._link = link
        self._apply = apply
        self._settling: dict[GroupKey, tuple[SettlingRate, SettlingRate]] = {}
        self.book: PolicyBook = EMPTY_BOOK
        self.mode = Mode.STARTING

    @property
    def brokers(self) -> list[str]:
        """The live brokers, this one included, in the order of names."""
        return sorted([*self._peers.names(), self._settings.speaker.broker])

    def known_brokers(self) -> int:
        """How many brokers there may be: never less than expected, stored, or heard of."""
        names = {self._settings.speaker.broker, *self._peers.names()}
        return max(self._settings.expected_brokers, len(names | self._settings.stored_peers))

    def shares(self, key: GroupKey, own: UsageRow | None = None) -> dict[str, Rates]:
        """Every live broker's share of a group, as the usage map has it.

        Args:
            key: which group and kind.
            own: reckon with this in place of this broker's row in the map.
        """
        quota = self.quota(key)
        messages = self._allocate(key, Dimension.MESSAGES, quota.messages, own)
        size = self._allocate(key, Dimension.BYTES, quota.bytes, own)
        names = self.brokers
        return {name: Rates(messages[place], size[place]) for place, name in enumerate(names)}

    def shares_if(self, key: GroupKey, own: UsageRow) -> tuple[int, ...]:
        """All limited shares in a row, if this broker's row were `own`."""
        shares = self.shares(key, own).values()
        return tuple(
            rate for pair in shares for rate in (pair.messages, pair.bytes) if rate is not None
        )

    def quota(self, key: GroupKey) -> Rates:
        """The cluster-wide rates of a group; unlimited where there is no such group."""
        group = self.book.groups.get(key.group)
        return UNLIMITED if group is None else group.rates(key.kind)

    def share_of(self, group: Group, kind: Kind, now: Nanos) -> Rates:
        """The share in force of a group that is in use from now on, if it was not before."""
        key = GroupKey(group.name, kind)
        if key not in self._settling:
            target = self._target(key)
            self._settling[key] = (
                SettlingRate(target.messages, now),
                SettlingRate(target.bytes, now),
            )
        return self._aim(key, now)

    def refresh(self, keys: Iterable[GroupKey], now: Nanos) -> None:
        """Reckon the shares of these groups anew, where they are in use here."""
        for key in keys:
            if key in self._settling:
                self._apply(key, self._aim(key, now), now)

    def refresh_all(self, now: Nanos) -> None:
        """Reckon every share in use anew: the brokers, the policies or the mode changed."""
        for key in [key for key in self._settling if key.group not in self.book.groups]:
            del self._settling[key]
        self.refresh(list(self._settling), now)

    def settle(self, now: Nanos) -> None:
        """Put the raises in force that have waited long enough."""
        settle_ns = self._link.settle_ns
        for key, pair in self._settling.items():
            if any((at := rate.next_at(settle_ns)) is not None and at <= now for rate in pair):
                self._apply(key, _in_force(pair, settle_ns, now), now)

    @property
    def settles_at(self) -> Nanos | None:
        """When the next raise comes into force."""
        settle_ns = self._link.settle_ns
        due = [
            at
            for pair in self._settling.values()
            for rate in pair
            if (at := rate.next_at(settle_ns)) is not None
        ]
        return min(due, default=None)

    def validate(self) -> None:
        """Check that every share in use settles on what is believed now.

        Raises:
            InvariantBroken: a share was not reckoned anew when it should have been; a bug.
        """
        for key, (messages, size) in self._settling.items():
            aimed, target = Rates(messages.target, size.target), self._target(key)
            if aimed != target:
                raise InvariantBroken(f"{key} settles on {aimed}, but should on {target}")

    def _aim(self, key: GroupKey, now: Nanos) -> Rates:
        pair = self._settling[key]
        target = self._target(key)
        pair[0].aim(target.messages, now)
        pair[1].aim(target.bytes, now)
        return _in_force(pair, self._link.settle_ns, now)

    def _target(self, key: GroupKey) -> Rates:
        quota = self.quota(key)
        if self.mode is Mode.OPEN:
            # A block needs no share; everything else is let through.
            return BLOCKED if quota == BLOCKED else UNLIMITED
        if self.mode is Mode.STARTING:
            return Rates(*(self._floor(rate) for rate in (quota.messages, quota.bytes)))
        if self.mode is Mode.EQUAL:
            return Rates(*(self._equal(rate) for rate in (quota.messages, quota.bytes)))
        return self.shares(key)[self._settings.speaker.broker]

    def _floor(self, quota: Rate) -> Rate:
        if quota is None:
            return None
        return floors(quota, self.known_brokers(), self._settings.floor_ppm)[-1]

    def _equal(self, quota: Rate) -> Rate:
        return None if quota is None else even(quota, self.known_brokers())[-1]

    def _allocate(
        self, key: GroupKey, dimension: Dimension, quota: Rate, own: UsageRow | None
    ) -> tuple[Rate, ...]:
        names = self.brokers
        if quota is None:
            return (None,) * len(names)
        usage = dict(self._usage.rows(key))
        if own is not None:
            usage[self._settings.speaker.broker] = own
        rows = []
        for name in names:
            peer = self._peers.get(name)
            weight = self._settings.weight if peer is None else peer.weight
            rows.append(_row(name, usage.get(name), dimension, weight))
        group = self.book.groups[key.group]
        return allocate(
            group.policy or self._settings.policy, quota, rows, floor_ppm=self._settings.floor_ppm
        )


def _row(name: str, row: UsageRow | None, dimension: Dimension, weight: int) -> Row:
    if row is None:
        return Row(name, weight=weight)
    if dimension is Dimension.MESSAGES:
        return Row(name, row.admitted.messages, row.wanted.messages, weight)
    return Row(name, row.admitted.bytes, row.wanted.bytes, weight)


def _in_force(pair: tuple[SettlingRate, SettlingRate], settle_ns: int, now: Nanos) -> Rates:
    return Rates(pair[0].at(now, settle_ns), pair[1].at(now, settle_ns))


def _ceiling(rate: Rate) -> float:
    return float("inf") if rate is None else rate
