"""The arena of rows by group: how much room it takes. Any moves are in tests/property/test_usage_map_arena.py."""

import numpy as np

from rgd.core.exchange.group_regions import GroupRegions

#: The least room of a group.
ROOM = 4


def test_the_holes_that_a_growing_group_leaves_are_closed() -> None:
    regions, slots = GroupRegions(), 51
    regions.make_room(slots, 2000)
    for row in range(1000):
        # One group has a row of each broker, and fifty others have one of each fiftieth.
        regions.add(np.array([0, 1 + row % 50]), np.array([2 * row, 2 * row + 1]))
    assert regions.live == 2000
    # Half as much again for holes, each group's least room, and its room to grow.
    assert regions.used <= 2000 * 3 // 2 + ROOM * 64 + 2000 // 2
    rows, counts = regions.gather(np.arange(slots))
    assert counts.tolist() == [1000, *[20] * 50]
    assert rows[:1000].tolist() == list(range(0, 2000, 2))


def test_groups_that_went_keep_no_more_than_their_least_room() -> None:
    regions, slots, brokers = GroupRegions(), np.arange(20), 30
    regions.make_room(50 * 20, brokers * 20)
    for turn in range(50):
        for broker in range(brokers):
            rows = 20 * broker + slots
            if turn:
                regions.remove(20 * (turn - 1) + slots, rows)
            regions.add(20 * turn + slots, rows)
    live = 20 * brokers
    assert regions.live == live
    # Half as much again for holes, each group's least room, and where the live ones moved to since.
    assert regions.used <= live * 3 // 2 + ROOM * 50 * 20 + live * 3 // 2
