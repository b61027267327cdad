"""What is worth saying again: change suppression by effect (design 3, "Reports").

Law: what the peers believe of this broker is never off by more than the
tolerance of a row, half a percent of the quota, or what would move anybody's
share by a percent; a drop to zero is always told; everything is told once in
`full_every_rounds`, spread over the rounds.

PIP-82 asks for "changed significantly (eg: +-10%)" and a mandatory report every
N cycles. Pulsar's own test misses drops to zero (pulsar-facts 1.4), and a fixed
percentage misses small rows that matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.exchange.columns import (
    NO_USAGE,
    Flags,
    Ints,
    UsageColumns,
    kind_code,
)
from rgd.core.exchange.group_index import GroupIndex, grown
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.shares.columns import NO_RATE
from rgd.core.shares.model import PPM

#: A change of this part of the quota is always told, in millionths.
QUOTA_PPM: Final = 5_000

#: A change that moves a share by more than this part of it is told, in millionths.
EFFECT_PPM: Final = 10_000


@dataclass(frozen=True, slots=True)
class SuppressionSettings:
    """How much change is worth a row."""

    #: `exchange.tolerance` in millionths.
    tolerance_ppm: int
    full_every_rounds: int


@dataclass(frozen=True, slots=True)
class OwnRates:
    """What this broker says of some groups.

    Attributes:
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    admitted: Ints
    wanted: Ints


#: [slots, 2] the quotas of groups, `NO_RATE` for unlimited.
QuotaOf = Callable[[Ints], Ints]
#: [slots] whether anybody's share moves by more than `EFFECT_PPM`, from the first rates to the second.
MovesShare = Callable[[Ints, OwnRates, OwnRates], Flags]


class Suppression:
    """Remembers what was told, by slot, and picks what to tell."""

    def __init__(
        self,
        settings: SuppressionSettings,
        index: GroupIndex,
        quota_of: QuotaOf,
        moves_share: MovesShare,
    ) -> None:
        self._settings = settings
        self._index = index
        self._quota_of = quota_of
        self._moves_share = moves_share
        self._is_told = np.zeros(64, np.bool_)
        self._topics = np.zeros(64, np.int64)
        #: [slots, 2] each.
        self._admitted = np.zeros((64, 2), np.int64)
        self._wanted = np.zeros((64, 2), np.int64)
        self._admitted_total = np.zeros((64, 2), np.int64)
        self._wanted_total = np.zeros((64, 2), np.int64)
        self._hash = 0
        self._round = 0

    @property
    def advertised_hash(self) -> int:
        """The hash of every row that the peers were told and that was not taken back."""
        return self._hash & HASH_MASK

    def told(self) -> UsageColumns:
        """Every row that the peers were told and that was not taken back."""
        return self._rows(np.flatnonzero(self._is_told))

    def advertised_at(self, slots: Ints) -> UsageColumns:
        """What the peers were told of these groups, all of which are among `advertised_slots`."""
        return self._rows(slots)

    def advertised_slots(self) -> Ints:
        """The slots of `told`."""
        return np.flatnonzero(self._is_told)

    def is_advertised(self, slots: Ints) -> Flags:
        """[slots] whether the peers know something of these groups from us."""
        self._make_room()
        return self._is_told[slots]

    def advertised_demand(self, slots: Ints) -> Ints:
        """[slots, 2] what the peers think that we want, Milli per second; 0 where they know nothing."""
        self._make_room()
        return np.where(self._is_told[slots, None], self._wanted[slots], 0)

    def next_round(self) -> None:
        """Begin to pick for another round: it decides whose turn it is to be told anyway."""
        self._round += 1

    def pick(self, slots: Ints, rows: UsageColumns, *, anyway: bool = True) -> Ints:
        """Choose the rows that are worth telling, and remember them as told.

        Args:
            slots: [rows] of `rows`.
            rows: what the broker would say of some of its groups.
            anyway: also those whose turn it is in this round.

        Returns:
            The slots in `rows` of those to tell.
        """
        self._make_room()
        picked = np.flatnonzero(self._worth(slots, rows, anyway=anyway))
        self._note(slots[picked], rows.take(picked))
        return picked

    def forget(self, slots: Ints) -> UsageColumns:
        """Take back what was told of these groups: rows that say idle, in the order of slots."""
        self._make_room()
        slots = slots[self._is_told[slots]]
        told = self._rows(slots)
        idle = UsageColumns(
            groups=told.groups,
            kinds=told.kinds,
            topics=np.zeros_like(told.topics),
            admitted=np.zeros_like(told.admitted),
            wanted=np.zeros_like(told.wanted),
            admitted_total=told.admitted_total,
            wanted_total=told.wanted_total,
        )
        self._note(slots, idle)
        return idle

    def rehash(self) -> None:
        """Reckon the hash of what was told from all of it: a fault may have left it behind."""
        self._make_room()
        self._hash = self._hash_at(np.flatnonzero(self._is_told))

    def _worth(self, slots: Ints, rows: UsageColumns, *, anyway: bool) -> Flags:
        idle, told = rows.is_idle, self._is_told[slots]
        worth = told & idle | ~told & ~idle
        both = np.flatnonzero(told & ~idle)
        at = slots[both]
        before = OwnRates(self._admitted[at], self._wanted[at])
        after = OwnRates(rows.admitted[both], rows.wanted[both])
        quota = self._quota_of(at)
        changed = self._changed(before.wanted, after.wanted, quota)
        changed |= self._changed(before.admitted, after.admitted, quota)
        if anyway:
            every = self._settings.full_every_rounds
            changed |= self._index.hashes[at] % np.uint64(every) == self._round % every
        # The dearest question comes last: whose other reasons do not suffice, and who changed at all.
        differs = (before.wanted != after.wanted) | (before.admitted != after.admitted)
        open_ = np.flatnonzero(~changed & differs.any(axis=1))
        if len(open_):
            changed[open_] = self._moves_share(
                at[open_],
                OwnRates(before.admitted[open_], before.wanted[open_]),
                OwnRates(after.admitted[open_], after.wanted[open_]),
            )
        worth[both] = changed
        return worth

    def _changed(self, before: Ints, after: Ints, quota: Ints) -> Flags:
        # Parts of float64: a difference in the 16th digit decides nothing that matters.
        change = np.abs(after - before).astype(np.float64)
        by_itself = change * PPM > before.astype(np.float64) * self._settings.tolerance_ppm
        by_quota = (quota != NO_RATE) & (change * PPM > quota.astype(np.float64) * QUOTA_PPM)
        changed: Flags = (by_itself | by_quota).any(axis=1)
        return changed

    def _note(self, slots: Ints, rows: UsageColumns) -> None:
        self._hash -= self._hash_at(slots[self._is_told[slots]])
        self._is_told[slots] = ~rows.is_idle
        self._topics[slots] = rows.topics
        self._admitted[slots] = rows.admitted
        self._wanted[slots] = rows.wanted
        self._admitted_total[slots] = rows.admitted_total
        self._wanted_total[slots] = rows.wanted_total
        self._hash += self._hash_at(slots[self._is_told[slots]])

    def _rows(self, slots: Ints) -> UsageColumns:
        if len(slots) == 0:
            return NO_USAGE
        keys = [self._index.keys[slot] for slot in slots.tolist()]
        return UsageColumns(
            groups=tuple(key.group for key in keys),
            kinds=np.array([kind_code(key.kind) for key in keys], np.uint8),
            topics=self._topics[slots],
            admitted=self._admitted[slots],
            wanted=self._wanted[slots],
            admitted_total=self._admitted_total[slots],
            wanted_total=self._wanted_total[slots],
        )

    def _hash_at(self, slots: Ints) -> int:
        return int(
            row_hashes(
                self._index.hashes[slots],
                self._topics[slots],
                self._admitted[slots],
                self._wanted[slots],
            ).sum()
        )

    def _make_room(self) -> None:
        count = len(self._index)
        if count > len(self._is_told):
            for name in (
                "_is_told",
                "_topics",
                "_admitted",
                "_wanted",
                "_admitted_total",
                "_wanted_total",
            ):
                setattr(self, name, grown(getattr(self, name), count))
