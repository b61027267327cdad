"""This broker's share of every group in use, reckoned from the usage map.

Law: every broker with the same map, the same members and the same policies
reckons the same shares. A share is reckoned when something changed, not on a
timer of its own: what changed is marked, and the marked groups are shared out
in slices of `SLICE_ROWS` rows with a rest between them, so that requests never
wait for long, and reports that come together are reckoned with together.

What a share is depends on the mode: nothing is believed of the others while
starting (the floor only) or while cut off (`exchange.on_isolation`). How a new
share comes into force is `rgd.core.broker.settling`'s business.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from rgd.core.broker.link import Link
from rgd.core.broker.mode import Mode
from rgd.core.broker.ranks import Ranks
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.settling import Settling
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import Flags, Ints, rates
from rgd.core.exchange.group_index import NO_PLACE, grown
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.suppression import EFFECT_PPM, OwnRates
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import BLOCKED, UNLIMITED, Group, Rate, Rates, SharePolicyName, lower
from rgd.core.policies.table import changed_keys
from rgd.core.shares.apportion import least_floor
from rgd.core.shares.columns import NO_RATE
from rgd.core.shares.model import PPM
from rgd.core.units import Kind, Nanos

#: Rows of the usage map that are shared out in one go: well under 2 ms of one core.
SLICE_ROWS: Final = 1_000

#: Groups whose rates are changed in one go, for the same reason.
SLICE_GROUPS: Final = 128

#: Most groups whose policies are read at once when a book comes, for the same reason.
CHANGES_MAX: Final = 32

#: Rest after each row that was shared out: reckoning takes at most about a third of a core.
REST_NS: Final = 1_000


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
        count_brokers: Callable[[int], None] | None = None,
    ) -> None:
        self._settings = settings
        self._usage = usage
        self._peers = peers
        self._link = link
        self._apply = apply
        self._count_brokers = count_brokers
        self._settling = Settling()
        self._ranks = Ranks(settings, usage, peers)
        #: [places, 2] what the groups in use settle on, and their quotas; `NO_RATE` is unlimited.
        self._target = np.zeros((64, 2), np.int64)
        self._quota = np.full((64, 2), NO_RATE, np.int64)
        self._is_in_use = np.zeros(64, np.bool_)
        #: By place: whether the share is to be reckoned anew, and from when on that may happen.
        self._is_marked = np.zeros(64, np.bool_)
        self._has_marks = False
        #: By place: whether the share in force is to be told even if it is the same as before.
        self._is_adrift = np.zeros(64, np.bool_)
        #: By place: whether the policies are to be read anew, since when, and the group as it was read.
        self._is_unread = np.zeros(64, np.bool_)
        self._has_unread = False
        self._unread_since = Nanos(0)
        self._groups: dict[int, Group] = {}
        #: Groups in use that got no slot, in the order in which they are tried again.
        self._slotless: dict[GroupKey, None] = {}
        #: By place: the most that is granted until its share is reckoned under the new policy.
        self._ceilings: dict[int, Rates] = {}
        self._next_place = 0
        self._rested_at = self._work_from = Nanos(0)
        self.book: PolicyBook = EMPTY_BOOK
        self.mode = Mode.STARTING

    @property
    def brokers(self) -> list[str]:
        """The live brokers, this one included, in the order of names."""
        return self._ranks.names()

    @property
    def ranks(self) -> Ranks:
        """Who shares with whom: for whoever looks at shares of many groups at once."""
        self._make_room()
        return self._ranks

    @property
    def is_reading(self) -> bool:
        """Whether policies are left to be read."""
        return self._has_unread

    def known_brokers(self) -> int:
        """How many brokers there may be: never less than expected, stored, or heard of."""
        names = {self._settings.speaker.broker, *self._peers.names()}
        return max(self._settings.expected_brokers, len(names | self._settings.stored_peers))

    def quota(self, key: GroupKey) -> Rates:
        """The cluster-wide rates of a group; unlimited where there is no such group."""
        group = self.book.groups.get(key.group)
        return UNLIMITED if group is None else group.rates(key.kind)

    def policy(self, key: GroupKey) -> SharePolicyName:
        """The share policy of a group."""
        group = self.book.groups.get(key.group)
        policy = None if group is None else group.policy
        return policy or self._settings.policy

    def quotas(self, places: Ints) -> Ints:
        """[places, 2] the cluster-wide rates of groups in use, `NO_RATE` for unlimited."""
        self._make_room()
        return self._quota[places]

    def shares(self, key: GroupKey) -> dict[str, Rates]:
        """Every live broker's share of a group, as the usage map has it."""
        self._make_room()
        place = self._usage.index.place(key)
        if place == NO_PLACE:
            return dict.fromkeys(self.brokers, self._least(self.quota(key)))
        quota = rates([_pair(self.quota(key))])
        shares = self._ranks.share_out(np.array([place]), quota, [self.policy(key)])
        table = shares.of_all()[0].tolist()
        return {
            name: Rates(*(None if rate == NO_RATE else rate for rate in pair))
            for name, pair in zip(self.brokers, table, strict=True)
        }

    def is_short(self, places: Ints) -> Flags:
        """[places] whether more is wanted of a group than there is, by the usage map."""
        self._make_room()
        rows = self._usage.gather(places)
        quota = self._quota[places]
        wanted = [np.bincount(rows.group, rows.wanted[:, at], len(places)) for at in range(2)]
        short: Flags = ((quota != NO_RATE) & (np.stack(wanted, axis=1) > quota)).any(axis=1)
        return short

    def moves_share(self, places: Ints, before: OwnRates, after: OwnRates) -> Flags:
        """[places] whether anybody's share moves by more than `EFFECT_PPM` of it.

        Args:
            places: groups in use.
            before: reckon with this in place of this broker's rows in the map.
            after: and then with this.
        """
        self._make_room()
        quota = self._quota[places]
        policies = self._policies(places)
        was = self._ranks.share_out(places, quota, policies, own=before).of_all()
        will_be = self._ranks.share_out(places, quota, policies, own=after).of_all()
        # Where there is no limit both are `NO_RATE`.
        far = np.maximum(was, 0) / (PPM / EFFECT_PPM)
        moves: Flags = (np.abs(will_be - was) > far).any(axis=(1, 2))
        return moves

    # What changes.

    def share_of(self, group: Group, kind: Kind, now: Nanos) -> Rates:
        """The share in force of a group that is in use from now on, if it was not before."""
        key = GroupKey(group.name, kind)
        place = self._usage.index.place(key)
        if place == NO_PLACE:
            # One too many to share: every broker may have its floor, whatever the others want.
            self._slotless[key] = None
            return self._least(group.rates(kind))
        self._make_room()
        if place not in self._settling:
            self._quota[place] = rates([_pair(self.quota(key))])[0]
            self._groups[place] = group
            target = self._targets(np.array([place]))[0]
            self._target[place] = target
            self._settling.begin(place, _rates(target.tolist()), now)
            # Last: nothing else can be done with a group that has no target.
            self._is_in_use[place] = True
        elif self._is_unread[place]:
            self._read_book(place)
        return self._in_force(place, now)

    def set_book(self, book: PolicyBook, now: Nanos, *, is_whole: bool = False) -> None:
        """Put policies in force; the groups that are gone are not in use any more.

        A few that changed are read at once. Of many each is read when it is asked for, and the others
        in slices (`work`); of all, where the book is taken as a whole.
        """
        before, self.book = self.book, book
        changed = None if is_whole else changed_keys(before.groups, book.groups, CHANGES_MAX)
        if changed is None:
            self._is_unread[:] = self._is_in_use
            self._has_unread = bool(self._is_unread.any())
            self._unread_since = now
            return
        keys = [GroupKey(name, kind) for name in sorted(changed) for kind in Kind]
        found = (self._usage.index.find(key) for key in keys)
        places = [place for place in found if place is not None and place in self._settling]
        for place in places:
            self._read_book(place)
        marked = np.array([place for place in places if self._is_marked[place]], np.int64)
        if len(marked):
            self._is_marked[marked] = False
            self._aim(marked, now)

    def refresh(self, places: Ints, now: Nanos) -> None:
        """Have the shares of these groups reckoned anew, where they are in use here."""
        self._make_room()
        marked = places[self._is_in_use[places]]
        if len(marked):
            self._is_marked[marked] = True
            self._has_marks = True
            self.work(now)

    def refresh_all(self, now: Nanos) -> None:
        """Have every share in use reckoned anew: the brokers, the policies or the mode changed."""
        self._ranks.renew()
        if self._count_brokers is not None:
            self._count_brokers(self.known_brokers())
        self.refresh(np.flatnonzero(self._is_in_use), now)

    def recover(self) -> None:
        """Trust nothing that is kept here: mark every share in use, and tell each one again.

        After a fault, for what was changed by half shows nowhere.
        """
        self._ranks.renew()
        if self._count_brokers is not None:
            self._count_brokers(self.known_brokers())
        self._make_room()
        self._is_adrift[:] = self._is_in_use
        self._is_marked[:] = self._is_in_use
        self._has_marks = bool(self._is_marked.any())
        self._has_unread = bool(self._is_unread.any())

    def work(self, now: Nanos) -> None:
        """Read, or share out, one slice of what is to be, if its time has come."""
        if self._has_unread:
            self._read_slice(now)
            return
        if not self._has_marks or now < self._work_from:
            return
        # In turn, or groups that change all the time would keep the others waiting.
        marked = np.flatnonzero(self._is_marked)
        if not len(marked):
            # The groups are gone.
            self._has_marks = False
            return
        places = np.roll(marked, -int(np.searchsorted(marked, self._next_place)))
        rows = np.cumsum(self._usage.counts(places) + 1)
        count = max(1, int(np.searchsorted(rows, SLICE_ROWS, side="right")))
        count = min(count, SLICE_GROUPS, len(places))
        self._has_marks = count < len(places)
        self._next_place = int(places[count - 1]) + 1
        self._is_marked[places[:count]] = False
        self._aim(places[:count], now)
        # A little work is done at once; only much of it has to rest in between.
        rested_at = max(self._rested_at, now) + int(rows[count - 1]) * REST_NS
        self._rested_at = Nanos(rested_at)
        self._work_from = Nanos(rested_at - SLICE_ROWS * REST_NS)

    def slot_of(self, key: GroupKey) -> int:
        """The slot of a group in use, `NO_PLACE` where it has none."""
        place = self._usage.index.find(key)
        return NO_PLACE if place is None or place not in self._settling else place

    @property
    def slotless(self) -> int:
        """How many groups in use got no slot: they are granted their floor."""
        return len(self._slotless)

    def retry(self, now: Nanos) -> None:
        """Try again, for a slice of the groups without a slot, to give them one."""
        for key in list(self._slotless)[:SLICE_GROUPS]:
            del self._slotless[key]
            group = self.book.groups.get(key.group)
            if group is not None:
                self._apply(key, self.share_of(group, key.kind, now), now)

    def is_unused(self, begin: int, end: int) -> Flags:
        """[slots] from `begin` to before `end`: whether no group in use has it."""
        self._make_room()
        unused: Flags = ~self._is_in_use[begin:end]
        return unused

    def forget(self, places: Ints) -> None:
        """Make slots fresh: they are given to other groups next."""
        self._target[places] = 0
        self._quota[places] = NO_RATE

    def settle(self, now: Nanos) -> None:
        """Put raises in force that have waited long enough, a slice of them."""
        settle_ns = self._link.settle_ns
        for place in self._settling.due(now, settle_ns, SLICE_GROUPS):
            self._apply(self._usage.index.keys[place], self._in_force(place, now), now)

    @property
    def due_at(self) -> Nanos | None:
        """When `work` or `settle` has something to do."""
        if self._has_unread:
            return self._unread_since
        settles_at = self._settling.next_at(self._link.settle_ns)
        if not self._has_marks:
            return settles_at
        return self._work_from if settles_at is None else min(settles_at, self._work_from)

    def validate(self) -> None:
        """Check that every share in use is what is believed now, and that all sum to the quotas.

        Raises:
            InvariantBroken: a share was not reckoned anew when it should have been; a bug.
        """
        self._make_room()
        self.check(np.flatnonzero(self._is_in_use))

    def next_in_use(self, begin: int) -> Ints:
        """The places of some groups in use, from a place on: few enough to be looked at in one go."""
        self._make_room()
        places = begin + np.flatnonzero(self._is_in_use[begin:])[:SLICE_GROUPS]
        rows = np.cumsum(self._usage.counts(places) + len(self.brokers))
        return places[: max(1, int(np.searchsorted(rows, SLICE_ROWS, side="right")))]

    def check(self, places: Ints) -> None:
        """Check some groups in use; those that are still to be read or shared out are passed over.

        Raises:
            InvariantBroken: a share in force is not the map's, or all brokers' do not sum to the quota.
        """
        places = places[~self._is_unread[places]]
        settled = places[~self._is_marked[places]]
        differing = np.flatnonzero((self._targets(settled) != self._target[settled]).any(axis=1))
        for place in settled[differing].tolist():
            raise InvariantBroken(
                f"{self._usage.index.keys[place]} settles on {self._target[place]}, not the map's share"
            )
        quota, policies = self._quota[places], self._policies(places)
        shares = self._ranks.share_out(places, quota, policies).of_all()
        is_max_min = np.array([policy is SharePolicyName.MAX_MIN for policy in policies], np.bool_)
        is_off = (quota != NO_RATE) & is_max_min[:, None] & (shares.sum(axis=1) != quota)
        for place in places[is_off.any(axis=1)].tolist():
            raise InvariantBroken(
                f"{self._usage.index.keys[place]}: the shares of all do not sum to {self._quota[place].tolist()}"
            )

    # How.

    def _aim(self, places: Ints, now: Nanos) -> None:
        targets = self._targets(places)
        differs = (targets != self._target[places]).any(axis=1)
        differs |= self._is_adrift[places]
        if self._ceilings:
            differs |= [self._ceilings.pop(place, None) is not None for place in places.tolist()]
        changed = np.flatnonzero(differs)
        self._target[places] = targets
        settle_ns = self._link.settle_ns
        pairs = zip(places[changed].tolist(), targets[changed].tolist(), strict=True)
        for place, target in pairs:
            rates_now = self._settling.aim(place, _rates(target), now, settle_ns)
            self._apply(self._usage.index.keys[place], rates_now, now)
        self._is_adrift[places] = False

    def _targets(self, places: Ints) -> Ints:
        """[places, 2] this broker's shares by mode."""
        quota = self._quota[places]
        if self.mode.believes_map:
            return self._ranks.share_out(places, quota, self._policies(places)).of_rank(
                self._ranks.own
            )
        # Many groups have the same quota, and reckoning with who may be there takes its time.
        quotas = [(messages, size) for messages, size in quota.tolist()]
        shares = {pair: _pair(self._by_mode(_rates(pair))) for pair in set(quotas)}
        return rates([shares[pair] for pair in quotas])

    def _by_mode(self, quota: Rates) -> Rates:
        if self.mode is Mode.OPEN:
            # A block needs no share; everything else is let through.
            return BLOCKED if quota == BLOCKED else UNLIMITED
        part = self._floor if self.mode.is_on_floor else self._equal
        return Rates(part(quota.messages), part(quota.bytes))

    def _least(self, quota: Rates) -> Rates:
        """What every broker may have at once: the floor."""
        return Rates(self._floor(quota.messages), self._floor(quota.bytes))

    def _floor(self, quota: Rate) -> Rate:
        if quota is None:
            return None
        return least_floor(quota, self.known_brokers(), self._settings.floor_ppm)

    def _equal(self, quota: Rate) -> Rate:
        return None if quota is None else quota // self.known_brokers()

    def _policies(self, places: Ints) -> list[SharePolicyName]:
        keys = self._usage.index.keys
        return [self.policy(keys[place]) for place in places.tolist()]

    def _read_slice(self, now: Nanos) -> None:
        unread = np.flatnonzero(self._is_unread)
        for place in unread[:SLICE_GROUPS].tolist():
            self._read_book(place)
            if place in self._ceilings:
                self._apply(self._usage.index.keys[place], self._in_force(place, now), now)
        self._has_unread = len(unread) > SLICE_GROUPS

    def _read_book(self, place: int) -> None:
        """Take note of the policy of a group in use: cuts are in force at once, the rest is reckoned.

        That it was read is noted last: whatever raises in between is done again.
        """
        key = self._usage.index.keys[place]
        group, before = self.book.groups.get(key.group), self._groups[place]
        if group is None:
            self._is_in_use[place] = self._is_marked[place] = False
            self._settling.end(place)
            self._ceilings.pop(place, None)
            del self._groups[place]
        elif group != before:
            self._change(place, before.rates(key.kind), group.rates(key.kind))
            self._groups[place] = group
        self._is_unread[place] = False

    def _change(self, place: int, was: Rates, quota: Rates) -> None:
        """Put another quota in force, as far as it is a cut, and have the share reckoned."""
        self._quota[place] = rates([_pair(quota)])[0]
        share = self._ceilings.get(place, _rates(self._target[place].tolist()))
        cut = Rates(
            self._cut(share.messages, was.messages, quota.messages),
            self._cut(share.bytes, was.bytes, quota.bytes),
        )
        if cut != share:
            self._ceilings[place] = cut
        self._is_marked[place] = self._has_marks = True

    def _in_force(self, place: int, now: Nanos) -> Rates:
        """The rates in force of a group in use."""
        settled = self._settling.in_force(place, now, self._link.settle_ns)
        ceiling = self._ceilings.get(place)
        return settled if ceiling is None else lower(settled, ceiling)

    def _cut(self, share: Rate, was: Rate, quota: Rate) -> Rate:
        """What is left of a share under another quota until it is reckoned: all brokers' stay within it."""
        if quota is None or (share is None and quota and self.mode is Mode.OPEN):
            return share
        if share is None or was is None:
            return self._equal(quota)
        return share * quota // was if quota < was else share

    def _make_room(self) -> None:
        count = len(self._usage.index)
        before = len(self._is_in_use)
        if count <= before:
            return
        self._target = grown(self._target, count)
        self._quota = grown(self._quota, count)
        self._quota[before:] = NO_RATE
        self._is_in_use = grown(self._is_in_use, count)
        self._is_marked = grown(self._is_marked, count)
        self._is_adrift = grown(self._is_adrift, count)
        self._is_unread = grown(self._is_unread, count)


def _pair(pair: Rates) -> tuple[Rate, Rate]:
    return pair.messages, pair.bytes


def _rates(pair: Sequence[int]) -> Rates:
    messages, size = pair
    return Rates(None if messages == NO_RATE else messages, None if size == NO_RATE else size)
