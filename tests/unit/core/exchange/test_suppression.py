"""Change suppression: every rule by itself.

The quota is 10,000 a second and alone decides the absolute rule; whether a share moves is what the
test says. Not covered: that what the peers believe is never further off, over any rounds
(tests/property/test_suppression.py).
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import NO_USAGE, Flags, Ints, UsageColumns, rates
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import OwnRates, Suppression, SuppressionSettings
from rgd.core.units import Kind, Pair
from tests.support.columns import advertised_hash
from tests.unit.core.values import advertised, key, rate, usage

FULL_EVERY = 10
QUOTA = (rate(10_000), rate(10_000))

Moves = Callable[[Ints, OwnRates, OwnRates], Flags]


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
            SuppressionSettings(tolerance_ppm, full_every_rounds=FULL_EVERY),
            self.index,
            lambda places: np.repeat(rates([quota]), len(places), axis=0),
            self.shares,
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


def test_a_row_that_was_never_told_is_news() -> None:
    house = House()
    assert house.pick(usage(1)) == [usage(1)]
    assert house.told() == [usage(1)]
    assert house.suppression.is_advertised(
        house.slots(usage(1), usage(1, group="other"))
    ).tolist() == [
        True,
        False,
    ]


def test_a_row_that_was_never_told_and_says_nothing_is_none() -> None:
    house = House()
    assert house.pick(usage(0)) == []
    assert house.told() == []


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
def test_a_change_by_more_than_the_tolerance_is_told(row: UsageRow, is_advertised: bool) -> None:
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


def test_a_rate_that_was_zero_has_no_tolerance() -> None:
    assert House(usage(100)).pick(usage(100, size=0.001))


@pytest.mark.parametrize(
    ("wanted", "size", "is_advertised"),
    [
        pytest.param(5050, 5000, False, id="half-a-percent"),
        pytest.param(5050.001, 5000, True, id="messages-by-more"),
        pytest.param(5000, 4949.999, True, id="bytes-by-more"),
    ],
)
def test_a_change_of_half_a_percent_of_the_quota_is_told(
    wanted: float, size: float, is_advertised: bool
) -> None:
    house = House(usage(5000, 5000, size=5000))
    assert bool(house.pick(usage(wanted, 5000, size=size))) is is_advertised


def test_without_a_quota_only_the_tolerance_counts() -> None:
    house = House(usage(5000), quota=(None, None))
    assert house.pick(usage(5400)) == []
    assert house.pick(usage(5600)) == [usage(5600)]


def test_a_quota_of_zero_has_no_half_percent() -> None:
    assert House(usage(5000), quota=(0, None)).pick(usage(5000.001)) == [usage(5000.001)]


def test_a_change_that_moves_anybodys_share_is_told() -> None:
    house = House(usage(100), shares=Shares(usage(101)))
    assert house.pick(usage(102, 102)) == []
    assert house.pick(usage(101, 101)) == [usage(101, 101)]
    # From what the peers believe to what is true.
    assert house.shares.asked == [
        ("gold", Pair(100_000), Pair(102_000)),
        ("gold", Pair(100_000), Pair(101_000)),
    ]


def test_each_row_is_judged_by_its_own_group() -> None:
    rows = [usage(100 + place, group=f"g{place}") for place in range(4)]
    after = [usage(101 + place, group=f"g{place}") for place in range(4)]
    house = House(*rows, shares=Shares(after[2]))
    assert house.pick(*reversed(after), anyway=False) == [after[2]]
    assert sorted(house.shares.asked) == [
        (f"g{place}", row.wanted, later.wanted)
        for place, (row, later) in enumerate(zip(rows, after, strict=True))
    ]


def test_only_what_is_open_is_asked_for_by_its_own_group() -> None:
    house = House(usage(100, group="told-anyhow"), usage(100, group="open"))
    after = [usage(500, group="told-anyhow"), usage(101, group="open")]
    assert house.pick(*after, anyway=False) == after[:1]
    assert house.shares.asked == [("open", Pair(100_000), Pair(101_000))]


def test_shares_are_not_reckoned_for_what_is_told_or_held_back_without() -> None:
    """It is the dearest question."""
    house = House(usage(100), usage(5, group="same"))
    house.pick(usage(200), usage(5, group="same"), usage(7, group="new"), anyway=False)
    house.pick(usage(0), anyway=False)
    assert house.shares.asked == []


def test_shares_that_move_by_others_doing_are_not_this_rows_news() -> None:
    house = House(usage(100), shares=Shares(usage(100)))
    assert house.pick(usage(100)) == []


def test_a_change_of_what_is_admitted_alone_may_move_a_share() -> None:
    house = House(usage(100, 90), shares=Shares(usage(100)))
    assert house.pick(usage(100, 91)) == [usage(100, 91)]


@pytest.mark.parametrize("tolerance_ppm", [100_000, 1_000_000])
def test_a_drop_to_zero_is_always_told(tolerance_ppm: int) -> None:
    house = House(usage(1), quota=(None, None), tolerance_ppm=tolerance_ppm)
    assert house.pick(usage(0, topics=0)) == [usage(0, topics=0)]
    assert house.told() == []
    assert house.pick(usage(0, topics=0)) == []


def test_what_is_gone_is_taken_back_once_by_a_row_that_says_idle() -> None:
    house = House(usage(1), usage(2, group="trial"), usage(3, kind=Kind.DISPATCH))
    places = house.slots(usage(0), usage(0, group="never"), usage(0, kind=Kind.DISPATCH))
    assert list(house.suppression.forget(places)) == [
        usage(0, topics=0),
        usage(0, topics=0, kind=Kind.DISPATCH),
    ]
    assert house.told() == [usage(2, group="trial")]
    assert house.suppression.forget(places) == NO_USAGE
    assert house.suppression.advertised_hash == advertised_hash([usage(2, group="trial")])


def test_everything_is_told_once_in_so_many_rounds() -> None:
    house = House(usage(100))
    told = []
    for _ in range(3 * FULL_EVERY):
        told.append(bool(house.pick(usage(100))))
        house.suppression.next_round()
    assert Counter(told)[True] == 3
    assert told[:FULL_EVERY] == told[FULL_EVERY : 2 * FULL_EVERY] == told[2 * FULL_EVERY :]


def test_full_rows_are_spread_over_the_rounds() -> None:
    rows = [usage(100, group=f"g{place}", kind=kind) for place in range(500) for kind in Kind]
    house = House(*rows)
    counts = []
    for _ in range(FULL_EVERY):
        counts.append(len(house.pick(*rows)))
        house.suppression.next_round()
    assert sum(counts) == len(rows)
    assert max(counts) < 2 * len(rows) / FULL_EVERY


def test_an_early_pick_tells_nothing_anyway() -> None:
    house = House(usage(100))
    told = []
    for _ in range(FULL_EVERY):
        told += house.pick(usage(100), anyway=False)
        house.suppression.next_round()
    assert told == []
    assert house.pick(usage(200), anyway=False) == [usage(200)]


def test_several_picks_of_one_round_are_of_the_same_round() -> None:
    rows = [usage(100, group=f"g{place}") for place in range(40)]
    house, sliced = House(*rows), House(*rows)
    in_one = house.pick(*rows)
    assert 0 < len(in_one) < len(rows)
    assert [*sliced.pick(*rows[:20]), *sliced.pick(*rows[20:])] == in_one


def test_a_row_told_early_is_what_later_ones_are_compared_with() -> None:
    house = House(usage(100))
    house.pick(usage(200), anyway=False)
    assert house.pick(usage(205)) == []
    house.pick(usage(0), anyway=False)
    assert house.told() == []


def test_what_is_told_is_found_by_place_and_zero_where_nothing_was() -> None:
    house = House(usage(100, 90, size=50))
    other = usage(1, group="other")
    assert house.suppression.advertised_demand(house.slots(usage(0), other)).tolist() == [
        [100_000, 50_000],
        [0, 0],
    ]
    house.pick(usage(0))
    assert house.suppression.advertised_demand(house.slots(usage(0))).tolist() == [[0, 0]]
    assert house.suppression.advertised_slots().tolist() == []


def test_the_hash_is_that_of_what_the_peers_hold() -> None:
    house = House(usage(100, size=5), usage(7, group="trial"))
    assert house.suppression.advertised_hash == advertised_hash(
        [usage(100, size=5), usage(7, group="trial")]
    )
    house.pick(usage(101, size=5), usage(9, group="trial"))
    assert house.suppression.advertised_hash == advertised_hash(
        [usage(100, size=5), usage(9, group="trial")]
    )
    house.pick(usage(0), usage(0, group="trial"))
    assert house.suppression.advertised_hash == 0


def test_more_groups_than_there_was_room_for_keep_what_was_told() -> None:
    house = House(usage(100))
    rows = [usage(1 + place, group=f"g{place}") for place in range(500)]
    for row in rows:
        assert house.pick(row) == [row]
    assert house.told() == [usage(100), *rows]
    assert house.pick(*rows, usage(100), anyway=False) == []
