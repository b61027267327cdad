"""Shares that come into force: raises that wait, and the pieces that many groups are shared out in.

Not covered: any sequence of targets (tests/property/test_damping.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import Bounds, SharingBounds
from rgd.core.errors import InvariantBroken
from rgd.core.policies.model import UNLIMITED, Group, Limit
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot
from rgd.core.units import Kind
from tests.unit.core.broker.sharing_house import SETTINGS, START, House
from tests.unit.core.values import key, ms, rates, report, usage

# Settling.


def test_a_quota_that_comes_cuts_at_once_and_one_that_goes_settles_first(house: House) -> None:
    assert house.use(None) == UNLIMITED
    house.quota(100)
    house.quota(None, at=1000)
    house.sharing.raise_due(ms(1100))
    # The second goes with the new policy.
    assert [share for _, share, _ in house.applied] == [rates(100), rates(100), UNLIMITED]


def test_a_share_that_was_not_recomputed_is_a_bug() -> None:
    house = House()
    house.peer(usage(90))
    house.use()
    house.sharing.validate()
    house.usage.apply(report("b1", usage(90)))
    with pytest.raises(InvariantBroken, match="not the map's share"):
        house.sharing.validate()


# Pieces.


def test_many_groups_are_shared_out_piece_by_piece_each_once() -> None:
    house = House(replace(SETTINGS, bounds=Bounds(sharing=SharingBounds(piece_groups=2))))
    groups = [Group(f"g{place}", Limit(rates(100))) for place in range(5)]
    house.change(*groups)
    for group in groups:
        house.sharing.first_share(group, Kind.PUBLISH, START)
    house.peer()
    house.usage.apply(report("b2", *(usage(90, group=group.name) for group in groups), sequence=2))
    house.applied.clear()
    house.sharing.refresh_all(START)
    changed = [len(house.applied)]
    while house.due() is not None:
        house.sharing.work(START)
        changed.append(len(house.applied))
    assert changed == [2, 4, 5]


# Policies that are read when a group is asked for.


def change_many(house: House, *groups: Group) -> None:
    """Put a snapshot in force of which nobody can say what changed in it."""
    snapshot = PolicySnapshot({group.name: group for group in groups})
    house.sharing.set_policies(snapshot, ALL_CHANGED)


def test_a_group_whose_policies_are_still_to_be_read_has_its_new_share_when_it_is_asked_for(
    house: House,
) -> None:
    house.peer(usage(90))
    house.own(usage(30))
    assert house.use(100) == rates(30)
    half = Group("gold", Limit(rates(50), rates(50)))
    change_many(house, half)
    assert house.sharing.first_share(half, Kind.PUBLISH, START)[1] == rates(25)


def test_idle_groups_are_read_by_the_way_and_missing_ones_are_given_up(house: House) -> None:
    house.use(100)
    change_many(house, Group("gold", Limit(rates(40), rates(40))))
    assert house.sharing.has_marks
    house.catch_up(0)
    # Each bucket is touched once.
    assert house.applied == [(key(), rates(40), START)]
    change_many(house)
    house.catch_up(0)
    assert house.due() is None
    assert house.gate.dropped == [key()]


def test_an_increase_that_is_due_waits_until_new_policies_are_read(house: House) -> None:
    house.use(100)
    house.quota(200)
    house.applied.clear()
    change_many(house)
    # The gate would drop the group that is gone, and its rounds still count it.
    house.sharing.raise_due(ms(1000))
    assert house.applied == []
    assert house.sharing.is_in_use(house.slots(key())).all()
    house.catch_up(1000)
    assert house.gate.dropped == [key()]


def test_an_increase_that_waited_for_new_policies_comes_with_them(house: House) -> None:
    house.use(100)
    wider = house.quota(200)
    house.applied.clear()
    change_many(house, wider)
    house.sharing.raise_due(ms(1000))
    house.catch_up(1000)
    assert [share for _, share, _ in house.applied] == [rates(200)]
