"""Shares that come into force: raises that settle, and the slices that many groups are reckoned in.

Not covered: any sequence of targets (tests/property/test_damping.py).
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, Bounds, ExchangeBounds, SharingBounds
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import UNLIMITED, Group, Limit, Rates
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot
from rgd.core.units import Kind, Nanos
from tests.unit.core.broker.sharing_house import SETTINGS, START, House
from tests.unit.core.values import key, ms, rates, report, usage

SHARING = BOUNDS.sharing


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.sharing.validate()


# Settling.


def test_a_cut_is_in_force_at_once_and_a_raise_when_it_has_settled(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    assert house.use() == rates(50)
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.refresh(key(), at=1000)
    assert house.applied == []
    assert house.due() == ms(1100)
    house.sharing.raise_due(ms(1099))
    assert house.applied == []
    house.sharing.raise_due(ms(1100))
    assert house.applied == [(key(), rates(80), ms(1100))]
    assert house.due() is None
    house.usage.apply(report("b2", usage(90), sequence=3))
    house.refresh(key(), at=1200)
    assert house.applied[1:] == [(key(), rates(50), ms(1200))]


def test_an_increase_waits_twice_as_long_as_marked_groups_did_but_not_beyond_the_limit() -> None:
    house = House(replace(SETTINGS, bounds=Bounds(sharing=SharingBounds(slice_rows=1))))
    house.link.sent(1, START)
    house.link.received(1, ms(30))
    groups = many(house, 3)
    house.peer(*(usage(90, group=group.name) for group in groups))
    told = report("b2", *(usage(20, group=group.name) for group in groups), sequence=2)
    house.usage.apply(told)
    house.sharing.refresh(house.slots(*(key(group.name) for group in groups)), ms(1000))
    assert house.due() == house.sharing.work_at
    house.sharing.work(ms(1010))
    assert house.sharing.damping_ns == ms(30 + 2 * 10)
    house.sharing.work(ms(1080))
    assert house.sharing.damping_ns == house.settings.damping_max_ns
    assert house.due() == ms(1000) + house.settings.damping_max_ns


def test_each_dimension_settles_by_itself(house: House) -> None:
    house.peer(usage(90, size=90))
    house.own(usage(90, size=90))
    assert house.use(100, 100) == rates(50, 50)
    house.usage.apply(report("b2", usage(20, size=200), sequence=2))
    house.usage.apply(report("b1", usage(90, size=20), sequence=2))
    house.refresh(key(), at=1000)
    target = house.sharing.shares(key())["b1"]
    assert target.messages is not None
    assert target.messages > 50_000
    assert house.applied == [(key(), Rates(50_000, target.bytes), ms(1000))]
    house.sharing.raise_due(ms(1100))
    assert house.applied[1:] == [(key(), target, ms(1100))]


def test_the_earliest_raise_of_any_group_is_waited_for(house: House) -> None:
    groups = {name: Group(name, Limit(rates(100))) for name in ("gold", "trial")}
    house.change(*groups.values())
    house.peer(usage(100, group="gold"), usage(100, group="trial"))
    for group in groups.values():
        house.sharing.first_share(group, Kind.PUBLISH, START)
    house.usage.apply(report("b2", usage(40, group="trial"), sequence=2))
    house.refresh(key("trial"), at=10)
    house.usage.apply(report("b2", usage(40, group="gold"), sequence=3))
    house.refresh(key("gold"), at=20)
    assert house.due() == ms(110)
    house.sharing.raise_due(ms(110))
    assert house.applied[-1][0] == key("trial")
    assert house.due() == ms(120)


def test_a_raise_waits_as_long_as_reports_take(house: House) -> None:
    house.link.sent(1, ms(0))
    house.link.received(1, ms(30))
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.refresh(key(), at=1000)
    assert house.due() == ms(1030)


def test_a_new_snapshot_does_not_hasten_a_raise(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.refresh(key(), at=1000)
    # As the limiter asks for every group in use when the snapshot changes.
    assert house.sharing.first_share(house.quota(), Kind.PUBLISH, ms(1050)) == rates(50)
    assert house.due() == ms(1100)


def test_a_quota_that_comes_cuts_at_once_and_one_that_goes_settles_first(house: House) -> None:
    assert house.use(None) == UNLIMITED
    house.quota(100)
    house.quota(None, at=1000)
    house.sharing.raise_due(ms(1100))
    # The second goes with the new policy.
    assert [share for _, share, _ in house.applied] == [rates(100), rates(100), UNLIMITED]


def test_a_group_that_is_not_in_use_is_not_reckoned(house: House) -> None:
    house.quota()
    house.refresh(key(), at=0)
    assert house.applied == []


def test_a_group_that_is_gone_is_forgotten_and_settles_anew_when_it_is_back(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.change(at=1000)
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.refresh(key(), at=1500)
    assert house.applied == []
    assert house.due() is None
    group = house.quota(at=2000)
    assert house.sharing.first_share(group, Kind.PUBLISH, ms(2000)) == rates(80)


def test_a_share_that_was_not_reckoned_anew_is_a_bug() -> None:
    house = House()
    house.peer(usage(90))
    house.use()
    house.sharing.validate()
    house.usage.apply(report("b1", usage(90)))
    with pytest.raises(InvariantBroken, match="not the map's share"):
        house.sharing.validate()


# Slices.


def many(house: House, count: int, messages: float = 100) -> list[Group]:
    """Put so many groups in force and in use."""
    groups = [Group(f"g{place:05}", Limit(rates(messages))) for place in range(count)]
    house.change(*groups)
    for group in groups:
        house.sharing.first_share(group, Kind.PUBLISH, START)
    return groups


def slices(house: House, at: float) -> tuple[list[int], Nanos]:
    """How many shares changed in each slice, and when all was reckoned; it rests in between."""
    now, changed = ms(at), []
    while house.sharing.work_at is not None:
        due = house.due()
        assert due is not None
        before = len(house.applied)
        if due > now:
            house.sharing.work(Nanos(due - 1))
            assert len(house.applied) == before, "worked before its rest was over"
        now = max(now, due)
        house.sharing.work(now)
        changed.append(len(house.applied) - before)
    return changed, now


def test_many_groups_are_reckoned_in_slices_until_every_share_is_right() -> None:
    house = House()
    groups = many(house, 3 * SHARING.slice_groups + 7)
    house.applied.clear()
    told = report("b2", *(usage(90, group=group.name) for group in groups))
    house.peers.receive(told.sender, START)
    house.peers.advance(told)
    house.usage.apply(told)
    house.sharing.refresh_all(ms(1000))
    # One slice at once, and the others in turns.
    assert 0 < len(house.applied) <= SHARING.slice_groups
    changed, _ = slices(house, 1000)
    assert max(changed) <= SHARING.slice_groups
    house.sharing.validate()
    # What b2 leaves, and each once.
    assert [(one.group, share) for one, share, _ in house.applied] == [
        (group.name, Rates(10_000 // 2 + 250)) for group in groups
    ]
    assert house.due() is None


def test_a_slice_has_no_more_rows_than_are_shared_out_in_one_go_and_they_are_rested_for() -> None:
    house = House()
    brokers = 50
    in_slice = SHARING.slice_rows // (brokers + 1)
    groups = many(house, 6 * in_slice)
    for broker in range(brokers):
        told = report(f"c{broker:02}", *(usage(90, group=group.name) for group in groups))
        house.peers.receive(told.sender, START)
        house.peers.advance(told)
        house.usage.apply(told)
    house.applied.clear()
    house.sharing.refresh_all(ms(1000))
    assert 0 < len(house.applied) <= in_slice
    changed, end = slices(house, 1000)
    assert max(changed) <= in_slice
    # A microsecond for each row, but for those of the last slice and of one that may be borrowed.
    assert end - ms(1000) >= (5 * in_slice * (brokers + 1) - SHARING.slice_rows) * SHARING.rest_ns
    assert end - ms(1000) <= 6 * SHARING.slice_rows * SHARING.rest_ns
    house.sharing.validate()


def test_after_some_small_slices_further_changes_wait_and_are_reckoned_together() -> None:
    house = House()
    groups = many(house, 60)
    house.peer()
    house.refresh_all(at=900)
    house.applied.clear()
    at_once = []
    for sequence, group in enumerate(groups, start=2):
        house.usage.apply(report("b2", usage(90, group=group.name), sequence=sequence))
        before = len(house.applied)
        house.sharing.refresh(house.slots(key(group.name)), ms(1000))
        at_once.append(len(house.applied) > before)
    # A slice of a group of two rows counts as `slice_cost_rows` more.
    count = SHARING.slice_rows // SHARING.slice_cost_rows
    assert at_once == [True] * count + [False] * (len(groups) - count)
    changed, end = slices(house, 1000)
    assert changed == [len(groups) - count]
    assert end - ms(1000) <= SHARING.slice_cost_rows * SHARING.rest_ns
    house.sharing.validate()


def test_a_group_of_more_rows_than_a_slice_is_reckoned_all_the_same() -> None:
    house = House(replace(SETTINGS, bounds=Bounds(sharing=SharingBounds(slice_rows=1))))
    many(house, 3)
    house.peer(*(usage(90, group=f"g{place:05}") for place in range(3)))
    house.usage.apply(
        report("b1", *(usage(20, group=f"g{place:05}") for place in range(3)), sequence=2)
    )
    house.applied.clear()
    house.refresh(*(key(f"g{place:05}") for place in range(3)), at=1000)
    house.sharing.raise_due(ms(1200))
    assert [one.group for one, _, _ in house.applied] == [f"g{place:05}" for place in range(3)]
    house.sharing.validate()


def test_what_is_marked_again_while_it_rests_is_reckoned_with_all_that_has_come() -> None:
    house = House()
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.applied.clear()
    for sequence, wanted in ((2, 95), (3, 20), (4, 10)):
        house.usage.apply(report("b2", usage(wanted), sequence=sequence))
        house.sharing.refresh(house.slots(key()), ms(1000))
    house.catch_up(1000)
    house.sharing.raise_due(ms(1200))
    assert house.applied[-1][:2] == (key(), rates(90))
    house.sharing.validate()


def test_a_raise_of_many_groups_comes_into_force_in_slices() -> None:
    house = House()
    count = SHARING.slice_groups + 3
    groups = many(house, count)
    house.peer(*(usage(90, group=group.name) for group in groups))
    house.usage.apply(
        report("b2", *(usage(20, group=group.name) for group in groups), sequence=2, full=True)
    )
    house.peers.leave(Sender("b2", 1), START)
    house.usage.remove("b2")
    house.refresh_all(1000)
    house.applied.clear()
    due = house.due()
    assert due is not None
    applied = 0
    while house.due() is not None:
        house.sharing.raise_due(ms(1200))
        assert 0 < len(house.applied) - applied <= SHARING.slice_groups
        applied = len(house.applied)
    assert applied == count


def test_a_group_that_goes_while_it_waits_for_its_slice_is_not_reckoned() -> None:
    house = House()
    groups = many(house, SHARING.slice_groups + 1)
    told = report("b2", *(usage(90, group=group.name) for group in groups))
    house.peers.receive(told.sender, START)
    house.peers.advance(told)
    house.usage.apply(told)
    house.sharing.refresh_all(ms(1000))
    house.applied.clear()
    house.change(groups[0], at=1000)
    assert {one.group for one, _, _ in house.applied} <= {groups[0].name}


def test_groups_that_change_all_the_time_do_not_keep_the_others_waiting() -> None:
    house = House()
    groups = many(house, 4 * SHARING.slice_groups)
    house.peer(*(usage(90, group=group.name) for group in groups))
    last = groups[-1].name
    house.usage.apply(report("b1", usage(90, group=last)))
    house.sharing.refresh(house.slots(*(key(group.name) for group in groups)), ms(1000))
    # More than is reckoned from one change of them to the next.
    restless = house.slots(*(key(group.name) for group in groups[: 3 * SHARING.slice_groups]))
    now = ms(1000)
    for _ in range(20):
        house.sharing.refresh(restless, now)
        now = max(now, house.sharing.work_at or now)
        house.sharing.work(now)
    assert not house.sharing.awaits(key(last))


def test_groups_for_which_there_is_no_place_have_their_floor_and_touch_nobody_elses_share() -> None:
    house = House(usage=UsageMap(GroupIndex(ExchangeBounds(slots_max=1))))
    groups = [Group("gold", Limit(rates(100)))]
    groups += [Group(f"late{place}", Limit(rates(7 + place))) for place in range(2)]
    house.change(*groups)
    shares = [house.sharing.first_share(group, Kind.PUBLISH, START) for group in groups]
    assert shares == [rates(100), rates(0.07), rates(0.08)]
    assert house.applied == []
    assert house.sharing.slotless == 2


# Policies that are read when a group is asked for.


def change_many(house: House, *groups: Group) -> None:
    """Put a snapshot in force of which nobody can say what changed in it."""
    snapshot = PolicySnapshot({group.name: group for group in groups})
    house.sharing.set_policies(snapshot, START, ALL_CHANGED)


def test_a_group_whose_policies_are_still_to_be_read_has_its_new_share_when_it_is_asked_for(
    house: House,
) -> None:
    house.peer(usage(90))
    house.own(usage(30))
    assert house.use(100) == rates(30)
    half = Group("gold", Limit(rates(50), rates(50)))
    change_many(house, half)
    assert house.sharing.first_share(half, Kind.PUBLISH, START) == rates(25)


def test_what_nobody_asks_for_is_read_in_slices_and_what_is_gone_is_given_up(house: House) -> None:
    house.use(100)
    change_many(house, Group("gold", Limit(rates(40), rates(40))))
    assert house.sharing.awaits(key())
    house.catch_up(0)
    # Each bucket is touched once.
    assert house.applied == [(key(), rates(40), START)]
    change_many(house)
    house.catch_up(0)
    assert house.due() is None
    assert house.gate.dropped == [key()]
