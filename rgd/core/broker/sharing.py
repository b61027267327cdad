"""This broker's share of every group in use, computed from the usage map.

Law: every broker with the same map, the same members and the same policies computes the same shares. A share is
recomputed after a change, not on a timer: a change marks its groups, and the marked groups are recomputed at once.
Of more than `SharingBounds.piece_groups`, the rest follow with the next wakes, so that what a peer gives up never waits for long.

The mode decides how a share is computed. A broker that is starting (floor only) or isolated (`exchange.on_isolation`)
does not use the usage map (`rgd.core.broker.mode_shares`). `rgd.core.broker.damping` decides when a new share comes
into force. The gate is called only where the rate in force, the policy or the depth of buckets changed.

Everything here is a column by slot id.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from rgd.core.broker.broker_index import BrokerIndex
from rgd.core.broker.damping import Damping
from rgd.core.broker.link import Link
from rgd.core.broker.mode import Mode
from rgd.core.broker.mode_shares import ModeShares
from rgd.core.broker.policies_in_use import PoliciesInUse
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_shares import ShardShares
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import Flags, Ints, rates, rates_of
from rgd.core.exchange.group_index import NO_SLOT
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.suppression import OwnRates
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.gate.port import Gate
from rgd.core.pairs import either
from rgd.core.policies.model import Group, GroupKey, Rates
from rgd.core.policies.snapshot import Changes, PolicySnapshot, changes_between
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Kind, Nanos

#: Columns by slot id.
_COLUMNS: Final = ("_target", "_applied", "_is_in_use", "_is_marked", "_is_held")


class Sharing:
    """This broker's shares; the gate puts them in force."""

    def __init__(
        self,
        settings: BrokerSettings,
        usage: UsageMap,
        peers: Peers,
        link: Link,
        gate: Gate,
        *,
        resumes: bool = False,
    ) -> None:
        self._settings = settings
        self._bounds = settings.bounds.sharing
        self._usage = usage
        self._peers = peers
        self._link = link
        self._gate = gate
        self._damping = Damping(usage.index)
        #: For callers that compute the shares of many groups at once, too.
        self.broker_index = BrokerIndex(settings, usage, peers)
        self._by_mode = ModeShares(settings, self.known_brokers)
        self.shards = ShardShares(settings, usage.index, self._by_mode)
        self.resumes = resumes
        self.policies = PoliciesInUse(settings.policy, usage.index)
        #: [slots, 2] the shares of groups in use when no increase waits, and the shares that the
        #: gate has; Milli per second, `NO_RATE` for unlimited.
        self._target = np.zeros((64, 2), np.int64)
        self._applied = np.zeros((64, 2), np.int64)
        self._is_in_use = np.zeros(64, np.bool_)
        #: [slots] whether the share is to be recomputed.
        self._is_marked = np.zeros(64, np.bool_)
        #: [slots] whether a group keeps the share that another plane gave it until a better one can be computed: while this
        #: broker starts and, where rows come in shards, while the group's shard cannot be relied on yet.
        self._is_held = np.zeros(64, np.bool_)
        usage.index.keep(self, dict.fromkeys(_COLUMNS, 0))
        usage.index.set_known(self.snapshot.groups)
        #: Groups in use that got no slot id, in the order in which they are tried again.
        self._slotless: dict[GroupKey, None] = {}
        self._next_slot = 0
        self.mode = Mode.STARTING

    @property
    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self.policies.snapshot

    @property
    def brokers(self) -> list[str]:
        """The live brokers, this one included, in the order of names."""
        return self.broker_index.names()

    @property
    def is_resuming(self) -> bool:
        """Whether the gate goes on as it is with another plane's shares, because this broker does not know any yet."""
        return self.resumes and self.mode is Mode.STARTING

    @property
    def slots_in_use(self) -> Ints:
        """The slot ids of all groups in use."""
        return np.flatnonzero(self._is_in_use)

    @property
    def has_marks(self) -> bool:
        """Whether a share is to be recomputed."""
        return bool(self._is_marked.any())

    def known_brokers(self) -> int:
        """How many brokers there may be: at least those expected, and those stored or live."""
        names = {*self.broker_index.stock_names(), *self._peers.names()}
        names.add(self._settings.sender.broker)
        return max(self._settings.expected_brokers, len(names | self._settings.stored_peers))

    def quotas(self, slots: Ints) -> Ints:
        """[slots, 2] the quotas of groups in use in Milli per second, `NO_RATE` for unlimited."""
        return self.policies.quotas[slots]

    def in_force(self, slots: Ints) -> Ints:
        """[slots, 2] the gate's shares in Milli per second, `NO_RATE` for unlimited."""
        return self._applied[slots]

    def in_force_of(self, key: GroupKey, slot: int) -> Rates | None:
        """The gate's share of a group, which has this slot id or `NO_SLOT`; None if it is not in use."""
        if slot != NO_SLOT and self._is_in_use[slot]:
            return rates_of(self._applied[slot].tolist())
        return self._by_mode.least(self.policies.quota(key)) if key in self._slotless else None

    def keys_in_use(self, count: int) -> Iterator[list[GroupKey]]:
        """The groups in use, so many at a time."""
        keys, slots, without = self._usage.index.keys, self.slots_in_use, list(self._slotless)
        for begin in range(0, len(slots), count):
            yield [keys[slot] for slot in slots[begin : begin + count].tolist()]
        for begin in range(0, len(without), count):
            yield without[begin : begin + count]

    def shares(self, key: GroupKey) -> dict[str, Rates]:
        """Every live broker's share of a group by the usage map; the floor without a slot id."""
        slot = self._usage.index.slot(key)
        if slot == NO_SLOT:
            return dict.fromkeys(self.brokers, self._by_mode.least(self.policies.quota(key)))
        quota = rates([self.policies.quota(key)])
        shares = self.broker_index.share_out(np.array([slot]), quota, [self.policies.policy(key)])
        table = shares.of_all()[0].tolist()
        return {name: rates_of(pair) for name, pair in zip(self.brokers, table, strict=True)}

    def is_short(self, slots: Ints) -> Flags:
        """[slots] whether the demand of a group in use exceeds its quota, by the usage map."""
        return self.broker_index.are_short(slots, self.policies.quotas[slots])

    def moves_share(self, slots: Ints, before: OwnRates, after: OwnRates) -> Flags:
        """[slots] whether any broker's share changes by more than `EFFECT_PPM` of it (`BrokerIndex`)."""
        quota, policies = self.policies.quotas[slots], self.policies.others(slots)
        return self.broker_index.moves_share(slots, quota, policies, before, after)

    # Changes.

    def first_share(self, group: Group, kind: Kind, now: Nanos) -> tuple[int, Rates]:
        """As `first_shares`, of one group."""
        return self.first_shares([GroupKey(group.name, kind)], now)[0]

    def first_shares(self, keys: Sequence[GroupKey], now: Nanos) -> list[tuple[int, Rates]]:
        """[keys] the slot ids and the shares in force of groups that are asked for the first time; they are in use from now on.

        Where no slot id is left it is `NO_SLOT` and the floor, which every broker may have whatever the others' demand.
        """
        if not keys:
            return []
        slots = self._usage.index.slots_of(keys)
        given = slots[slots != NO_SLOT]
        fresh = given[~self._is_in_use[given]]
        self.policies.read(fresh)
        self._begin(fresh, self._targets(fresh), now)
        self.share_out(given[self.policies.is_unread[given]], now)
        in_force = iter(self._applied[given].tolist())
        shares = []
        for key, slot in zip(keys, slots.tolist(), strict=True):
            self._slotless.pop(key, None)
            if slot == NO_SLOT:
                self._slotless[key] = None
                shares.append((slot, self._by_mode.least(self.policies.quota(key))))
            else:
                shares.append((slot, rates_of(next(in_force))))
        return shares

    def hold(self, slots: Ints, shares: Ints, now: Nanos) -> None:
        """Begin to use groups that are not in use with shares, [slots, 2], that the gate has already."""
        self.policies.read(slots)
        self._is_held[slots] = True
        self._begin(slots, shares, now)

    def set_policies(self, snapshot: PolicySnapshot, changes: Changes | None = None) -> Ints:
        """Take new policies over; the groups that may have changed are read when their shares are recomputed.

        Args:
            snapshot: the new policies.
            changes: those since the policies before; without them, both are compared.

        Returns:
            The slot ids to be recomputed at once (`share_out`): those of a few changed groups.
        """
        changed = (changes or changes_between(self.snapshot, snapshot)).groups
        self.policies.snapshot = snapshot
        slots = self._usage.index.set_known(snapshot.groups, changed)
        slots = slots[self._is_in_use[slots]]
        self.policies.is_unread[slots] = True
        self._is_marked[slots] = True
        return slots[:0] if changed is None else slots

    def become(self, mode: Mode, now: Nanos) -> None:
        """Compute shares as a mode does, and give buckets its depth."""
        self.mode = mode
        if self.is_resuming:
            # Also where the gate has become isolated: the next mode tells all.
            return
        # A daemon that knows no peers yet grants no bursts, because N daemons might do so at once.
        self._gate.set_depth(0 if mode.is_on_floor else self._settings.burst_ns)
        # The gate gives a bucket its depth with its share.
        self.policies.is_unread |= self._is_in_use
        self.refresh_all(now)

    def refresh(self, slots: Ints, now: Nanos) -> None:
        """Recompute the shares of the groups of these that are in use here."""
        self._is_marked[slots[self._is_in_use[slots]]] = True
        self.work(now)

    def refresh_all(self, now: Nanos) -> None:
        """Recompute all shares in use, because the brokers, their weights or the mode changed."""
        self.broker_index.renew()
        if not self.is_resuming:
            self._gate.set_brokers(self.known_brokers())
        self.refresh(self.slots_in_use, now)

    def work(self, now: Nanos) -> None:
        """Recompute a piece of the marked groups."""
        if not self.has_marks:
            return
        # Pieces go round the slot ids; otherwise groups that change often would delay the others.
        marked = self._is_marked.nonzero()[0]
        first = int(marked.searchsorted(self._next_slot))
        slots = np.concatenate((marked[first:], marked[:first]))[: self._bounds.piece_groups]
        rows = ((self._usage.counts(slots) + 1) * self.broker_index.passes).cumsum()
        slots = slots[: max(1, int(rows.searchsorted(self._bounds.piece_rows, side="right")))]
        self._next_slot = int(slots[-1]) + 1 if len(slots) else 0
        self.share_out(slots, now)

    def share_out(self, slots: Ints, now: Nanos) -> None:
        """Read the policies of groups in use where they may have changed, and put their shares in force as damping allows."""
        self._is_marked[slots] = False
        unread = slots[self.policies.is_unread[slots]]
        if len(unread):
            before = self.policies.quotas[unread]
            self._end(unread[~self.policies.read(unread)])
            # A share of another quota is not kept.
            self._is_held[unread[either(before != self.policies.quotas[unread])]] = False
            slots = slots[self._is_in_use[slots]]
        targets, again = self._targets(slots), np.isin(slots, unread)
        differs = either(targets != self._target[slots]) | again
        slots, targets, again = slots[differs], targets[differs], again[differs]
        if len(slots):
            self._target[slots] = targets
            in_force = self._damping.aim(slots, targets, now, self._link.damping_ns)
            self._announce(slots, in_force, now, again)

    def slot_of(self, key: GroupKey) -> int:
        """The slot id of a group in use, `NO_SLOT` where it has none."""
        slot = self._usage.index.find(key)
        return NO_SLOT if slot is None or not self._is_in_use[slot] else slot

    @property
    def slotless(self) -> int:
        """How many groups in use got no slot id; they are granted their floor."""
        return len(self._slotless)

    def retry(self, now: Nanos) -> None:
        """Try again to give slot ids to some groups without one."""
        self.give_slots(list(islice(self._slotless, self._bounds.retried_a_round)), now)

    def give_slots(self, keys: Iterable[GroupKey], now: Nanos) -> None:
        """Give slot ids and shares to groups that the gate has without."""
        known = []
        for key in dict.fromkeys(keys):
            if key.group in self.snapshot.groups:
                known.append(key)
            else:
                self._slotless.pop(key, None)
                self._gate.drop([key])
        for key, (slot, share) in zip(known, self.first_shares(known, now), strict=True):
            self._gate.give_slot(key, slot, share, now)

    def is_in_use(self, slots: Ints) -> Flags:
        """[slots] whether a group in use has the slot id."""
        return self._is_in_use[slots]

    def exist(self, slots: Ints) -> Flags:
        """[slots] whether a group in use has the slot id, and the policies in force have the group."""
        groups, keys = self.snapshot.groups, self._usage.index.keys
        known = [keys[slot].group in groups for slot in slots.tolist()]
        return self.is_in_use(slots) & np.array(known, np.bool_)

    def raise_due(self, now: Nanos) -> None:
        """Put the increases in force that have waited long enough, at most a piece."""
        damping_ns = self._link.damping_ns
        slots, in_force = self._damping.raise_due(now, damping_ns, self._bounds.piece_groups)
        # A group with new policies gets its rate with them: the gate would drop one that is gone, which is still in use here.
        is_read = ~self.policies.is_unread[slots]
        self._announce(slots[is_read], in_force[is_read], now, np.False_)

    @property
    def due_at(self) -> Nanos | None:
        """When `work` or `raise_due` is due; None where neither is."""
        return Nanos(0) if self.has_marks else self._damping.next_at(self._link.damping_ns)

    def validate(self) -> None:
        """Check that every share in use is up to date, but for those to be recomputed, and that all sum to the quotas.

        Raises:
            InvariantBroken: a target differs from the share that the mode gives, or the shares of
                all brokers do not sum to the quota; a bug.
        """
        slots = self.slots_in_use
        quota, is_max_min = self.policies.quotas[slots], self.policies.is_max_min(slots)
        # Not `_targets`, so that what `BrokerIndex.divide` remembers is checked, too.
        shared = self.broker_index.share_out(slots, quota, self.policies.others(slots))
        targets = self._by_state(slots, quota, lambda: shared.of_index(self.broker_index.own))
        differs = either(targets != self._target[slots]) & ~self._is_marked[slots]
        for slot in slots[differs].tolist():
            raise InvariantBroken(
                f"{self._usage.index.keys[slot]} has {self._target[slot]}, not the map's share"
            )
        shares = shared.of_all()
        is_off = (quota != NO_RATE) & is_max_min[:, None] & (shares.sum(axis=1) != quota)
        for slot in slots[either(is_off)].tolist():
            raise InvariantBroken(
                f"{self._usage.index.keys[slot]}: the shares of all do not sum to {self.policies.quotas[slot].tolist()}"
            )

    # Details.

    def _begin(self, slots: Ints, shares: Ints, now: Nanos) -> None:
        """Use groups that were not in use, with shares that are in force at once."""
        self._target[slots] = self._applied[slots] = shares
        self._damping.begin(slots, shares)
        # After the target, because a group in use must have one.
        self._is_in_use[slots] = True
        self.shards.use(slots, now)

    def _end(self, slots: Ints) -> None:
        """Groups that no longer exist are not in use."""
        self._is_in_use[slots] = self._is_held[slots] = False
        self._damping.end(slots)
        self._gate.drop([self._usage.index.keys[slot] for slot in slots.tolist()])

    def _announce(self, slots: Ints, in_force: Ints, now: Nanos, again: Flags | np.bool_) -> None:
        """Give the gate the rates in force that it does not have yet, and those that it is to be given `again`."""
        differs = either(in_force != self._applied[slots]) | again
        slots, in_force = slots[differs], in_force[differs]
        self._applied[slots] = in_force
        shares = map(rates_of, in_force.tolist())
        self._gate.set_shares(zip(slots.tolist(), shares, strict=True), now)

    def _targets(self, slots: Ints) -> Ints:
        """[slots, 2] this broker's shares in the present mode."""
        quota, policies = self.policies.quotas[slots], self.policies.others(slots)
        of_map = self.broker_index.own_shares
        return self._by_state(slots, quota, lambda: of_map(slots, quota, policies))

    def _by_state(self, slots: Ints, quota: Ints, of_map: Callable[[], Ints]) -> Ints:
        """[slots, 2] shares in the present mode, and in the phases of shards; `of_map` are those by the usage map."""
        # An equal part is what the gate grants of what is new to it; a floor would be less.
        mode = Mode.EQUAL if self.is_resuming else self.mode
        if mode.believes_map:
            shares = self.shards.by_phase(slots, quota, of_map())
        else:
            shares = self._by_mode.shares(mode, quota)
        is_kept = self._is_held[slots]
        if self.mode is not Mode.STARTING:
            is_kept &= self.shards.are_cold(slots) & mode.believes_map
        shares[is_kept] = self._target[slots[is_kept]]
        return shares
