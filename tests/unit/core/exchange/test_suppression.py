"""Change suppression: its rules.

The quota is 10,000 a second and alone decides the absolute rule; whether a share moves is what the
test says. Not covered: that what the peers believe is never further off, over any rounds
(tests/property/test_suppression.py).
"""

from collections import Counter

import numpy as np
import pytest

from rgd.core.exchange.columns import Flags, Ints, UsageColumns, rates
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import OwnRates, Suppression
from rgd.core.policies.model import GroupKey
from rgd.core.units import Pair
from tests.unit.core.values import advertised, key, rate, usage

FULL_EVERY = 10
QUOTA = (rate(10_000), rate(10_000))


class Shares:
    """Stands for the sender's reckoning, and remembers what it was asked."""

    def __init__(self, *moving: UsageRow) -> None:
        self.moving = [tuple(row.wanted) for row in moving]
        self.asked: list[tuple[str, Pair, Pair]] = []

    def __call__(self, places: Ints, before: OwnRates, after: OwnRates) -> Flags:
        for place, was, now in zip(places, before.wanted, after.wanted, strict=True):
            group = House.index.keys[int(place)].group
            self.asked.append((group, Pair(*was.tolist()), Pair(*now.tolist())))
        return np.array([tuple(now) in self.moving for now in after.wanted.tolist()], np.bool_)


class House:
    """A suppression that has told some rows and is far from the round in which it would anyhow."""

    index = GroupIndex()

    def __init__(
        self,
        *told: UsageRow,
        quota: tuple[int | None, int | None] = QUOTA,
        shares: Shares | None = None,
        tolerance_ppm: int = 100_000,
    ) -> None:
        House.index = GroupIndex()
        self.shares = shares or Shares()
        self.suppression = Suppression(
            self.index,
            lambda places: np.repeat(rates([quota]), len(places), axis=0),
            self.shares,
            tolerance_ppm=tolerance_ppm,
            full_every=FULL_EVERY,
        )
        self.pick(*told)
        slot = int(self.index.hashes[self.slot(key())] % FULL_EVERY)
        for _ in range(slot + 1):
            self.suppression.next_round()

    def slot(self, group: GroupKey) -> int:
        return self.index.slot(group)

    def slots(self, *rows: UsageRow) -> Ints:
        return np.array([self.slot(GroupKey(row.group, row.kind)) for row in rows], np.int64)

    def pick(self, *rows: UsageRow, anyway: bool = True) -> list[UsageRow]:
        columns = UsageColumns.of(*rows)
        picked = self.suppression.pick(self.slots(*rows), columns, anyway=anyway)
        return list(columns.take(picked))

    def told(self) -> list[UsageRow]:
        return list(advertised(self.suppression))


def test_the_same_again_is_held_back() -> None:
    house = House(usage(100, 90, size=50))
    assert house.pick(usage(100, 90, size=50)) == []
    # What the peers hold stays what was told.
    assert house.told() == [usage(100, 90, size=50)]


@pytest.mark.parametrize(
    ("row", "is_advertised"),
    [
        pytest.param(usage(110, 100, size=100), False, id="wanted-by-the-tolerance"),
        pytest.param(usage(110.001, 100, size=100), True, id="wanted-by-more"),
        pytest.param(usage(89.999, 100, size=100), True, id="wanted-less"),
        pytest.param(usage(100, 90, size=100), False, id="admitted-by-the-tolerance"),
        pytest.param(usage(100, 89.999, size=100), True, id="admitted-by-more"),
        pytest.param(usage(100, 100, size=110), False, id="bytes-by-the-tolerance"),
        pytest.param(usage(100, 100, size=110.001), True, id="bytes-by-more"),
    ],
)
def test_a_change_beyond_the_tolerance_is_advertised(row: UsageRow, is_advertised: bool) -> None:
    assert bool(House(usage(100, 100, size=100)).pick(row)) is is_advertised


def test_demand_that_differs_by_rounding_alone_stays_as_it_is_advertised() -> None:
    house = House(usage(100, 90, size=50))
    rows = UsageColumns.of(usage(100.1, 30, size=49.949), usage(100, group="new"))
    slots = house.slots(*rows)
    near, new = house.suppression.steadied(slots, rows)
    # Messages are off by a thousandth, bytes by more, and admitted work is told as it is.
    assert near.wanted == (rate(100), rate(49.949))
    assert near.admitted == (rate(30), rate(49.949))
    assert new == usage(100, group="new")
    gone = UsageColumns.of(usage(0))
    assert list(house.suppression.steadied(slots[:1], gone)) == [usage(0)]


def test_a_change_that_moves_any_share_is_advertised() -> None:
    house = House(usage(100), shares=Shares(usage(101)))
    assert house.pick(usage(102, 102)) == []
    assert house.pick(usage(101, 101)) == [usage(101, 101)]
    # From what the peers believe to what is true.
    assert house.shares.asked == [
        ("gold", Pair(100_000), Pair(102_000)),
        ("gold", Pair(100_000), Pair(101_000)),
    ]


def test_clear_changes_are_picked_without_computing_shares() -> None:
    """It is the dearest question."""
    house = House(usage(100), usage(5, group="same"))
    house.pick(usage(200), usage(5, group="same"), usage(7, group="new"), anyway=False)
    house.pick(usage(0), anyway=False)
    assert house.shares.asked == []


@pytest.mark.parametrize("tolerance_ppm", [100_000, 1_000_000])
def test_a_drop_to_zero_is_always_advertised(tolerance_ppm: int) -> None:
    house = House(usage(1), quota=(None, None), tolerance_ppm=tolerance_ppm)
    assert house.pick(usage(0, topics=0)) == [usage(0, topics=0)]
    assert house.told() == []
    assert house.pick(usage(0, topics=0)) == []


def test_everything_is_advertised_once_in_so_many_rounds() -> None:
    house = House(usage(100))
    told = []
    for _ in range(3 * FULL_EVERY):
        told.append(bool(house.pick(usage(100))))
        house.suppression.next_round()
    assert Counter(told)[True] == 3
    assert told[:FULL_EVERY] == told[FULL_EVERY : 2 * FULL_EVERY] == told[2 * FULL_EVERY :]
