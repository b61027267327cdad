"""Places of groups: given once, found again, and no more than there may be.

Not covered: the arrays that are kept by place (test_usage_map.py, test_suppression.py).
"""

import numpy as np

from rgd.core.bounds import ExchangeBounds
from rgd.core.exchange.columns import KINDS
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex, grown
from rgd.core.units import Kind
from tests.unit.core.values import key


def codes(*kinds: Kind) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array([KINDS.index(kind) for kind in kinds], np.uint8)


def test_what_is_one_too_many_has_no_place_and_the_others_keep_theirs() -> None:
    index = GroupIndex(ExchangeBounds(slots_max=2))
    index.slot(key("a"))
    kinds = codes(*[Kind.PUBLISH] * 3)
    assert index.slots(("b", "c", "a"), kinds).tolist() == [1, NO_SLOT, 0]
    assert index.slot(key("c")) == NO_SLOT
    assert index.find(key("c")) is None
    assert len(index) == 2


# What is freed, and who may add how many.


def test_a_freed_slot_is_given_again_and_its_old_key_is_not_found() -> None:
    index = GroupIndex()
    index.slots(("a", "b", "c"), codes(*[Kind.PUBLISH] * 3))
    before = index.tickets[:3].tolist()
    index.free(np.array([1]))
    assert index.find(key("b")) is None
    assert (index.given, len(index)) == (2, 3)
    assert index.tickets[:3].tolist() == [before[0], 0, before[2]]
    assert index.slot(key("d", Kind.DISPATCH)) == 1
    assert index.tickets[1] not in {0, *before}
    assert index.keys == [key("a"), key("d", Kind.DISPATCH), key("c")]
    assert index.slot(key("b")) == 3


def test_the_hash_of_a_slot_is_that_of_its_new_key() -> None:
    index, other = GroupIndex(), GroupIndex()
    index.slot(key("a"))
    index.free(np.array([0]))
    assert index.hashes[index.slot(key("b"))] == other.hashes[other.slot(key("b"))]


def test_of_groups_without_policies_only_so_many_get_a_slot() -> None:
    index = GroupIndex()
    index.set_known({"gold"})
    groups, kinds = ("x", "gold", "y", "x", "z"), codes(*[Kind.PUBLISH] * 3, *[Kind.DISPATCH] * 2)
    assert index.slots(groups, kinds, room=2).tolist() == [0, 1, 2, NO_SLOT, NO_SLOT]
    assert (index.unknown, index.refused) == (2, 2)
    # What has a slot is found, room or not.
    assert index.slots(groups, kinds, room=0).tolist() == [0, 1, 2, NO_SLOT, NO_SLOT]


def test_all_groups_without_policies_together_get_only_so_many() -> None:
    index = GroupIndex(ExchangeBounds(unknown_slots_max=1))
    index.set_known({"gold"})
    kinds = codes(*[Kind.PUBLISH] * 3)
    assert index.slots(("x", "y", "gold"), kinds).tolist() == [0, NO_SLOT, 1]
    index.free(np.array([0]))
    assert index.unknown == 0
    assert index.slots(("x", "y", "gold"), kinds, skip=np.array([True, False, False])).tolist() == [
        NO_SLOT,
        0,
        1,
    ]


def test_a_group_that_gets_policies_does_not_count_among_the_unknown() -> None:
    index = GroupIndex()
    index.set_known(set())
    index.slots(("x", "y"), codes(Kind.PUBLISH, Kind.PUBLISH))
    index.set_known({"y"})
    index.judge(np.arange(2))
    assert (index.unknown, index.is_unknown[:2].tolist()) == (1, [True, False])
    index.set_known({"x"})
    index.judge(np.arange(2))
    assert (index.unknown, index.is_unknown[:2].tolist()) == (1, [False, True])
    index.free(np.array([1]))
    index.judge(np.arange(2))
    assert index.unknown == 0


def test_hashes_tell_groups_and_kinds_apart_and_are_the_same_on_every_broker() -> None:
    one, other = GroupIndex(), GroupIndex()
    keys = [key(f"g{place}", kind) for place in range(300) for kind in Kind]
    for each in keys:
        one.slot(each)
    for each in reversed(keys):
        other.slot(each)
    hashes = one.hashes[: len(keys)].tolist()
    assert len(set(hashes)) == len(keys)
    assert other.hashes[: len(keys)].tolist() == hashes[::-1]


def test_a_column_grows_by_half_and_keeps_what_it_has() -> None:
    column = np.arange(8).reshape(4, 2)
    assert grown(column, 4) is column
    assert grown(column, 5).shape == (6, 2)
    assert grown(column, 50).shape == (50, 2)
    assert grown(column, 5).tolist() == [*column.tolist(), [0, 0], [0, 0]]
