"""Places of groups: given once, found again, and no more than there may be.

Not covered: the arrays that are kept by place (test_usage_map.py, test_suppression.py).
"""

import numpy as np

from rgd.core.bounds import ExchangeBounds
from rgd.core.exchange.columns import KINDS
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.units import Kind


def codes(*kinds: Kind) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array([KINDS.index(kind) for kind in kinds], np.uint8)


# What is freed, and who may add how many.


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
