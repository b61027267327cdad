"""Change suppression: every rule of design 3, "Reports", by itself.

The quota is 10,000 a second and alone decides the absolute rule; shares are what the test says.
Not covered: that what the peers believe is never further off, over any rounds
(tests/property/test_suppression.py).
"""

from collections import Counter
from zlib import crc32

import pytest

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import UsageRow
from rgd.core.exchange.suppression import Suppression, SuppressionSettings
from rgd.core.policies.model import Rates
from rgd.core.units import Kind
from tests.unit.core.values import key, rates, usage

FULL_EVERY = 10
QUOTA = rates(10_000, 10_000)

#: The round, of ten, in which gold/publish is told whatever it is.
SLOT = crc32(b"gold/publish") % FULL_EVERY


class Shares:
    """Stands for the sender's reckoning: shares by what this broker wants."""

    def __init__(self) -> None:
        self.by_wanted: dict[int, tuple[int, ...]] = {}

    def __call__(self, group: GroupKey, row: UsageRow) -> tuple[int, ...]:
        return self.by_wanted.get(row.wanted.messages, (1000, 1000))


def suppression(*told: UsageRow, quota: Rates = QUOTA, shares: Shares | None = None) -> Suppression:
    """One that has told these rows and is far from the round in which it would anyhow."""
    made = Suppression(
        SuppressionSettings(tolerance_ppm=100_000, full_every_rounds=FULL_EVERY),
        lambda group: quota,
        shares or Shares(),
    )
    for _ in range(SLOT):
        made.pick({})
    made.note(list(told))
    return made


def picked(made: Suppression, *rows: UsageRow) -> list[UsageRow]:
    return made.pick({GroupKey(row.group, row.kind): row for row in rows})


def test_a_row_that_was_never_told_is_news() -> None:
    made = suppression()
    assert picked(made, usage(1)) == [usage(1)]
    assert made.told == {key(): usage(1)}


def test_a_row_that_was_never_told_and_says_nothing_is_none() -> None:
    made = suppression()
    assert picked(made, usage(0)) == []
    assert made.told == {}


def test_the_same_again_is_held_back() -> None:
    made = suppression(usage(100, 90, size=50))
    assert picked(made, usage(100, 90, size=50, total=1)) == []
    # What the peers hold stays what was told.
    assert made.told == {key(): usage(100, 90, size=50)}


@pytest.mark.parametrize(
    ("row", "is_told"),
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
def test_a_change_by_more_than_the_tolerance_is_told(row: UsageRow, is_told: bool) -> None:
    assert bool(picked(suppression(usage(100, 100, size=100)), row)) is is_told


def test_a_rate_that_was_zero_has_no_tolerance() -> None:
    assert picked(suppression(usage(100)), usage(100, size=0.001))


@pytest.mark.parametrize(
    ("wanted", "size", "is_told"),
    [
        pytest.param(5050, 5000, False, id="half-a-percent"),
        pytest.param(5050.001, 5000, True, id="messages-by-more"),
        pytest.param(5000, 4949.999, True, id="bytes-by-more"),
    ],
)
def test_a_change_of_half_a_percent_of_the_quota_is_told(
    wanted: float, size: float, is_told: bool
) -> None:
    made = suppression(usage(5000, 5000, size=5000))
    assert bool(picked(made, usage(wanted, 5000, size=size))) is is_told


def test_without_a_quota_only_the_tolerance_counts() -> None:
    made = suppression(usage(5000), quota=Rates())
    assert picked(made, usage(5400)) == []
    assert picked(made, usage(5600)) == [usage(5600)]


@pytest.mark.parametrize(
    ("after", "is_told"),
    [
        pytest.param((1000, 2020), False, id="by-a-percent"),
        pytest.param((1000, 2021), True, id="by-more"),
        pytest.param((989, 2000), True, id="less"),
    ],
)
def test_a_change_that_moves_anybodys_share_is_told(after: tuple[int, int], is_told: bool) -> None:
    shares = Shares()
    shares.by_wanted = {100_000: (1000, 2000), 101_000: after}
    made = suppression(usage(100), shares=shares)
    assert bool(picked(made, usage(101, 101))) is is_told


def test_shares_that_move_by_others_doing_are_not_this_rows_news() -> None:
    class Moving(Shares):
        def __call__(self, group: GroupKey, row: UsageRow) -> tuple[int, ...]:
            self.by_wanted[0] = (2 * self.by_wanted.get(0, (1,))[0],)
            return self.by_wanted[0]

    assert picked(suppression(usage(100), shares=Moving()), usage(100, total=7)) == []


@pytest.mark.parametrize("tolerance_ppm", [100_000, 1_000_000])
def test_a_drop_to_zero_is_always_told(tolerance_ppm: int) -> None:
    settings = SuppressionSettings(tolerance_ppm, FULL_EVERY)
    made = Suppression(settings, lambda group: Rates(), Shares())
    made.note([usage(1, total=5)])
    assert picked(made, usage(0, topics=0, total=9)) == [usage(0, topics=0, total=9)]
    assert made.told == {}


def test_a_row_that_is_missing_is_told_as_zero_once() -> None:
    made = suppression(usage(1, total=5), usage(2, group="trial"))
    assert picked(made, usage(2, group="trial")) == [usage(0, topics=0, total=5)]
    assert made.told == {key("trial"): usage(2, group="trial")}
    assert picked(made, usage(2, group="trial")) == []


def test_everything_is_told_once_in_so_many_rounds() -> None:
    made = suppression(usage(100))
    told = [bool(picked(made, usage(100))) for _ in range(3 * FULL_EVERY)]
    assert Counter(told)[True] == 3
    assert told[:FULL_EVERY] == told[FULL_EVERY : 2 * FULL_EVERY] == told[2 * FULL_EVERY :]


def test_full_rows_are_spread_over_the_rounds() -> None:
    rows = [usage(100, group=f"g{place}", kind=kind) for place in range(500) for kind in Kind]
    made = suppression(*rows)
    counts = [len(picked(made, *rows)) for _ in range(FULL_EVERY)]
    assert sum(counts) == len(rows)
    assert max(counts) < 2 * len(rows) / FULL_EVERY


def test_a_row_told_early_is_what_later_ones_are_compared_with() -> None:
    made = suppression(usage(100))
    made.note([usage(200)])
    assert picked(made, usage(205)) == []
    made.note([usage(0)])
    assert made.told == {}
