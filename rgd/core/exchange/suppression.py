"""Decides which rows to report: change suppression by effect.

Law: the peers' view of this broker differs by at most the tolerance of a row, half
a percent of the quota, or what would change any broker's share by a percent. A drop
to zero is always reported. Every row is reported once in `full_every_rounds` rounds,
spread over the rounds.

PIP-82 asks for "changed significantly (eg: +-10%)" and a mandatory report every
N cycles. Pulsar's own test misses drops to zero (pulsar-facts 1.4), and a fixed
percentage misses small rows that matter.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.pairs import either
from rgd.core.shares.columns import NO_RATE
from rgd.core.shares.model import PPM

#: A change above this part of the quota is always reported, in millionths.
QUOTA_PPM: Final = 5_000

#: A change that alters a share by more than this part of it is reported, in millionths.
EFFECT_PPM: Final = 10_000

#: Demand that differs by less than this part of what is advertised counts as the same, in
#: millionths: it is rounding, and peers would compute all shares of the group again.
SAME_PPM: Final = 1_000


@dataclass(frozen=True, slots=True)
class OwnRates:
    """This broker's rates of some groups.

    Attributes:
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    admitted: Ints
    wanted: Ints


#: [slots, 2] the quotas of groups, `NO_RATE` for unlimited.
QuotaOf = Callable[[Ints], Ints]
#: [slots] whether any share changes by more than `EFFECT_PPM` from the first rates to the second.
MovesShare = Callable[[Ints, OwnRates, OwnRates], Flags]


class Suppression:
    """Stores the advertised rows by slot, and selects the rows to report.

    Args:
        index: of the slots.
        quota_of: gives quotas.
        moves_share: says which changes move shares.
        tolerance_ppm: `exchange.tolerance` in millionths.
        full_every: rounds in which each row is reported once.
    """

    def __init__(
        self,
        index: GroupIndex,
        quota_of: QuotaOf,
        moves_share: MovesShare,
        *,
        tolerance_ppm: int,
        full_every: int,
    ) -> None:
        self._tolerance_ppm = tolerance_ppm
        self._full_every = full_every
        self._index = index
        self._quota_of = quota_of
        self._moves_share = moves_share
        self._is_advertised = np.zeros(64, np.bool_)
        self._topics = np.zeros(64, np.int64)
        #: Each [slots, 2].
        self._admitted = np.zeros((64, 2), np.int64)
        self._wanted = np.zeros((64, 2), np.int64)
        index.keep(self, dict.fromkeys(("_is_advertised", "_topics", "_admitted", "_wanted"), 0))
        self._round = 0

    def advertised_slots(self, shard: Shard = WHOLE) -> Ints:
        """The slots of the rows of a shard that are advertised and not taken back."""
        slots = np.flatnonzero(self._is_advertised)
        return slots[self._index.are_of(slots, shard)]

    def hash_of(self, shard: Shard = WHOLE) -> int:
        """Hash of every row of a shard advertised at present, 63 bits."""
        slots = self.advertised_slots(shard)
        rates = np.concatenate((self._admitted[slots].T, self._wanted[slots].T))
        hashes = row_hashes(self._index.hashes[slots], self._topics[slots], rates)
        return int(hashes.sum()) & HASH_MASK

    def is_advertised(self, slots: Ints) -> Flags:
        """[slots] whether a row of these groups is advertised."""
        return self._is_advertised[slots]

    def advertised_demand(self, slots: Ints) -> Ints:
        """[slots, 2] advertised demand, Milli per second; 0 where none is advertised."""
        return np.where(self._is_advertised[slots, None], self._wanted[slots], 0)

    def next_round(self) -> None:
        """Begin another round, which determines the rows that are due for a mandatory report."""
        self._round += 1

    def steadied(self, slots: Ints, rows: UsageColumns) -> UsageColumns:
        """The rows, with demand as it is advertised where it differs by rounding alone.

        Args:
            slots: [rows] slots of `rows`.
            rows: present rows of some of this broker's groups.
        """
        before = self._wanted[slots]
        is_same = np.abs(rows.wanted - before) <= before // (PPM // SAME_PPM)
        return replace(rows, wanted=np.where(is_same, before, rows.wanted))

    def pick(self, slots: Ints, rows: UsageColumns, *, anyway: bool = True) -> Ints:
        """Select the rows to report, and store them as advertised.

        Args:
            slots: [rows] slots of `rows`.
            rows: present rows of some of this broker's groups.
            anyway: also select the rows whose mandatory report is due in this round.

        Returns:
            The indexes into `rows` of the selected ones.
        """
        picked = np.flatnonzero(self._worth(slots, rows, anyway=anyway))
        self._note(slots[picked], rows.take(picked))
        return picked

    def forget(self, slots: Ints) -> None:
        """Take back what is advertised of these groups: their rows are idle."""
        for column in (self._is_advertised, self._topics, self._admitted, self._wanted):
            column[slots] = 0

    def _worth(self, slots: Ints, rows: UsageColumns, *, anyway: bool) -> Flags:
        idle, known = rows.is_idle, self._is_advertised[slots]
        worth = known & idle | ~known & ~idle
        both = np.flatnonzero(known & ~idle)
        at = slots[both]
        before = OwnRates(self._admitted[at], self._wanted[at])
        after = OwnRates(rows.admitted[both], rows.wanted[both])
        quota = self._quota_of(at)
        changed = self._changed(before.wanted, after.wanted, quota)
        changed |= self._changed(before.admitted, after.admitted, quota)
        if anyway:
            every = self._full_every
            changed |= self._index.hashes[at] % np.uint64(every) == self._round % every
        # The most expensive test is last, only for rows that changed and were not selected yet.
        differs = (before.wanted != after.wanted) | (before.admitted != after.admitted)
        open_ = np.flatnonzero(~changed & either(differs))
        if len(open_):
            changed[open_] = self._moves_share(
                at[open_],
                OwnRates(before.admitted[open_], before.wanted[open_]),
                OwnRates(after.admitted[open_], after.wanted[open_]),
            )
        worth[both] = changed
        return worth

    def _changed(self, before: Ints, after: Ints, quota: Ints) -> Flags:
        # float64 is enough: an error in the 16th digit has no effect that matters.
        change = np.abs(after - before).astype(np.float64)
        by_itself = change * PPM > before.astype(np.float64) * self._tolerance_ppm
        by_quota = (quota != NO_RATE) & (change * PPM > quota.astype(np.float64) * QUOTA_PPM)
        return either(by_itself | by_quota)

    def _note(self, slots: Ints, rows: UsageColumns) -> None:
        self._is_advertised[slots] = ~rows.is_idle
        self._topics[slots] = rows.topics
        self._admitted[slots] = rows.admitted
        self._wanted[slots] = rows.wanted

    def advertised_at(self, slots: Ints) -> UsageColumns:
        """The rows of these groups as they are advertised, idle where that was taken back."""
        return UsageColumns(
            groups=self._index.names(slots),
            kinds=self._index.kinds[slots],
            topics=self._topics[slots],
            admitted=self._admitted[slots],
            wanted=self._wanted[slots],
        )
