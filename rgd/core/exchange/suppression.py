"""What is worth saying again: change suppression by effect (design 3, "Reports").

Law: what the peers believe of this broker is never off by more than the
tolerance of a row, half a percent of the quota, or what would move anybody's
share by a percent; a drop to zero is always told; everything is told once in
`full_every_rounds`, spread over the rounds.

PIP-82 asks for "changed significantly (eg: +-10%)" and a mandatory report every
N cycles. Pulsar's own test misses drops to zero (pulsar-facts 1.4), and a fixed
percentage misses small rows that matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import UsageRow
from rgd.core.policies.model import Rates
from rgd.core.shares.model import PPM
from rgd.core.units import Pair

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


#: The quota of a row, and the shares of all brokers if this row stood for ours.
QuotaOf = Callable[[GroupKey], Rates]
SharesIf = Callable[[GroupKey, UsageRow], tuple[int, ...]]


class Suppression:
    """Remembers what was told, and picks what to tell."""

    def __init__(
        self, settings: SuppressionSettings, quota_of: QuotaOf, shares_if: SharesIf
    ) -> None:
        self._settings = settings
        self._quota_of = quota_of
        self._shares_if = shares_if
        self._told: dict[GroupKey, UsageRow] = {}
        self._round = 0

    @property
    def told(self) -> Mapping[GroupKey, UsageRow]:
        """What the peers were told last and was not taken back."""
        return self._told

    def pick(self, rows: Mapping[GroupKey, UsageRow]) -> list[UsageRow]:
        """Choose the rows of this round's report out of all rows of the broker.

        A row that was told and is missing from `rows` is told as idle.
        """
        self._round += 1
        picked = [row for row in rows.values() if self._worth(row)]
        idle = [row.as_idle() for key, row in self._told.items() if key not in rows]
        self.note(picked)
        self.note(idle)
        return picked + idle

    def note(self, rows: list[UsageRow]) -> None:
        """Remember rows as told."""
        for row in rows:
            key = GroupKey(row.group, row.kind)
            if row.is_idle:
                self._told.pop(key, None)
            else:
                self._told[key] = row

    def _worth(self, row: UsageRow) -> bool:
        key = GroupKey(row.group, row.kind)
        told = self._told.get(key)
        if told is None:
            return not row.is_idle
        if row.is_idle:
            return True
        every = self._settings.full_every_rounds
        if crc32(f"{row.group}/{row.kind}".encode()) % every == self._round % every:
            return True
        quota = self._quota_of(key)
        for before, after in ((told.wanted, row.wanted), (told.admitted, row.admitted)):
            if self._changed(before, after, quota):
                return True
        return self._moves_a_share(key, told, row)

    def _changed(self, before: Pair, after: Pair, quota: Rates) -> bool:
        for was, now, whole in zip(before, after, (quota.messages, quota.bytes), strict=True):
            change = abs(now - was)
            if change * PPM > self._settings.tolerance_ppm * was:
                return True
            if whole is not None and change * PPM > QUOTA_PPM * whole:
                return True
        return False

    def _moves_a_share(self, key: GroupKey, told: UsageRow, row: UsageRow) -> bool:
        if (told.wanted, told.admitted) == (row.wanted, row.admitted):
            return False
        before, after = self._shares_if(key, told), self._shares_if(key, row)
        return any(
            abs(now - was) * PPM > EFFECT_PPM * was for was, now in zip(before, after, strict=True)
        )
