"""The live brokers by index, and shares computed over all of them.

Law: all brokers number the live brokers alike, by the order of their names; the order in which
messages were received does not matter. A share policy gets at most one row for each live broker.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import Flags, Ints
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.suppression import EFFECT_PPM, OwnRates
from rgd.core.exchange.usage_map import Gathered, UsageMap
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, Shares, share_out
from rgd.core.shares.model import PPM, WEIGHT_ONE
from rgd.core.shares.pip82 import share_by_usage
from rgd.core.stock.steering import evened, hungry, is_hungry

#: How one broker's shares follow from the demand of all: `own_shares`, or what remembers its results.
Divide = Callable[..., Ints]


def own_shares(rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int, own: int) -> Ints:
    """[groups, 2] the shares of the broker with the index `own`, under max-min; for the rest as `share_out`."""
    return share_out(rows, quota, brokers=brokers, floor_ppm=floor_ppm).of_index(own)


class BrokerIndex:
    """The live brokers by index: the position of each in the order of names."""

    def __init__(self, settings: BrokerSettings, usage: UsageMap, peers: Peers) -> None:
        self._settings = settings
        self._usage = usage
        self._peers = peers
        self._names: list[str] = []
        #: The index of each broker, by its number in the usage map; -1 where it is not live.
        self._index = np.zeros(0, np.int64)
        #: The weight of each broker, by its index.
        self._weight = np.zeros(0, np.int64)
        #: The stock Pulsar brokers, which are no peers; and which of the live brokers are.
        self.stock_names: Callable[[], Collection[str]] = tuple
        self.is_stock = np.zeros(0, np.bool_)
        #: The simulator puts one here that computes once what all its daemons compute from the same rows.
        self.divide: Divide = own_shares
        self.renew()

    def names(self) -> list[str]:
        """The live brokers, this one included, in the order of names."""
        return self._names

    @property
    def own(self) -> int:
        """This broker's index."""
        return int(self._index[self._usage.number_of(self._settings.sender.broker)])

    @property
    def passes(self) -> int:
        """How often shares are computed for a share of this broker: twice where a stock broker may be hungry."""
        return 2 if self.is_stock.any() else 1

    def renew(self) -> None:
        """Read the live brokers and their weights again, because one of them changed."""
        me = self._settings.sender.broker
        members = {*self._peers.names(), me}
        stock = {*self.stock_names()} - members
        self._names = sorted(members | stock)
        numbers = [self._usage.number_of(name) for name in self._names]
        self._index = np.full(self._usage.brokers_numbered, -1, np.int64)
        self._index[numbers] = np.arange(len(numbers))
        peers = [self._peers.get(name) for name in self._names]
        weights = [WEIGHT_ONE if peer is None else peer.weight for peer in peers]
        self._weight = np.array(weights, np.int64)
        self._weight[self._names.index(me)] = self._settings.weight
        self.is_stock = np.array([name in stock for name in self._names])

    def share_out(
        self,
        slots: Ints,
        quota: Ints,
        policies: Sequence[SharePolicyName],
        *,
        own: OwnRates | None = None,
        stock_is_hungry: bool = False,
    ) -> Shares:
        """Divide the quotas of groups among the live brokers.

        Args:
            slots: [groups] slot ids.
            quota: [groups, 2] Milli per second, `NO_RATE` for unlimited.
            policies: [groups]; empty where all groups have max-min.
            own: rates to use instead of this broker's rows in the map.
            stock_is_hungry: whether stock brokers want the whole quota, or what they use.
        """
        gathered, table = self._rows(slots, quota, own, stock_is_hungry=stock_is_hungry)
        shares = self._max_min(table, quota)
        shares.others = self._others(gathered, table, quota, policies)
        return shares

    def own_shares(self, slots: Ints, quota: Ints, policies: Sequence[SharePolicyName]) -> Ints:
        """[groups, 2] this broker's shares; the arguments are those of `share_out`."""
        gathered, table = self._rows(slots, quota)
        index = self.own
        shares = self.divide(
            table,
            quota,
            brokers=len(self._names),
            floor_ppm=self._settings.floor_ppm,
            own=index,
        )
        for at, of_all in self._others(gathered, table, quota, policies):
            shares[at] = of_all[:, index]
        return shares

    def are_short(self, slots: Ints, quota: Ints) -> Flags:
        """[groups] whether the demand of all brokers exceeds the quota; the arguments are those of `share_out`."""
        _, rows = self._rows(slots, quota)
        short = np.zeros(len(quota), np.bool_)
        for at in range(2):
            wanted = np.bincount(rows.group, rows.wanted[:, at], len(quota))
            short |= (quota[:, at] != NO_RATE) & (wanted > quota[:, at])
        return short

    def moves_share(
        self,
        slots: Ints,
        quota: Ints,
        policies: Sequence[SharePolicyName],
        before: OwnRates,
        after: OwnRates,
    ) -> Flags:
        """[groups] whether any broker's share changes by more than `EFFECT_PPM` of it.

        Args:
            slots: as in `share_out`.
            quota: as in `share_out`.
            policies: as in `share_out`.
            before: this broker's rates before the change, used instead of its rows in the map.
            after: this broker's rates after the change.
        """
        was = self.share_out(slots, quota, policies, own=before).of_all()
        will_be = self.share_out(slots, quota, policies, own=after).of_all()
        # Unlimited rates are `NO_RATE` in both, so they differ by 0.
        far = np.maximum(was, 0) / (PPM / EFFECT_PPM)
        moves: Flags = (np.abs(will_be - was) > far).any(axis=(1, 2))
        return moves

    def _rows(
        self,
        slots: Ints,
        quota: Ints,
        own: OwnRates | None = None,
        *,
        stock_is_hungry: bool = False,
    ) -> tuple[Gathered, Rows]:
        """The rows of groups as they are shared out, and their columns."""
        rows = self._usage.gather(slots)
        if own is not None:
            me = self._usage.number_of(self._settings.sender.broker)
            rows = _with_own(rows, own, me)
        broker_index = self._index[rows.broker]
        if self.is_stock.any():
            rows = self._with_stock(rows, broker_index, quota, stock_is_hungry=stock_is_hungry)
        return rows, Rows(rows.group, broker_index, rows.wanted, self._weight[broker_index])

    def _max_min(self, rows: Rows, quota: Ints) -> Shares:
        brokers, floor_ppm = len(self._names), self._settings.floor_ppm
        return share_out(rows, quota, brokers=brokers, floor_ppm=floor_ppm)

    def _others(
        self, rows: Gathered, table: Rows, quota: Ints, policies: Sequence[SharePolicyName]
    ) -> Sequence[tuple[Ints, Ints]]:
        """The groups with another policy than max-min, as in `Shares.others`."""
        others = []
        for policy in set(policies) - {SharePolicyName.MAX_MIN}:
            at = np.array([place for place, one in enumerate(policies) if one is policy])
            others.append((at, self._by_usage(rows, table.broker_index, at, quota, policy)))
        return others

    def _with_stock(
        self, rows: Gathered, broker_index: Ints, quota: Ints, *, stock_is_hungry: bool
    ) -> Gathered:
        """The rows, with the demand that the rules of steering give stock brokers."""
        is_stock = self.is_stock[broker_index]
        if not is_stock.any():
            return rows
        count = len(quota)
        wanted = evened(rows.group, rows.wanted, is_stock, count)
        wishes = hungry(rows.group, wanted, is_stock, quota)
        if not stock_is_hungry:
            table = Rows(rows.group, broker_index, wishes, self._weight[broker_index])
            parts = self._max_min(table, quota).of_rows
            group = rows.group[is_stock]
            are_hungry = is_hungry(group, wanted[is_stock], parts[is_stock], count)
            wishes = np.where(are_hungry[rows.group][:, None], wishes, wanted)
        return rows._replace(wanted=wishes)

    def _by_usage(
        self, rows: Gathered, broker_index: Ints, at: Ints, quota: Ints, policy: SharePolicyName
    ) -> Ints:
        """[at, brokers, 2] the shares of the groups `at` under a policy over admitted rates."""
        used = np.zeros((len(quota), len(self._names), 2), np.int64)
        used[rows.group, broker_index] = rows.admitted
        return share_by_usage(policy, quota[at], used[at], self._settings.floor_ppm)


def _with_own(rows: Gathered, own: OwnRates, me: int) -> Gathered:
    """The rows, with `own` instead of this broker's."""
    is_other = rows.broker != me
    count = len(own.wanted)
    group = np.concatenate((rows.group[is_other], np.arange(count)))
    order = np.argsort(group, kind="stable")
    return Gathered(
        group=group[order],
        broker=np.concatenate((rows.broker[is_other], np.full(count, me)))[order],
        # Shares do not depend on topics.
        topics=np.zeros(len(order), np.int64),
        admitted=np.concatenate((rows.admitted[is_other], own.admitted))[order],
        wanted=np.concatenate((rows.wanted[is_other], own.wanted))[order],
    )
