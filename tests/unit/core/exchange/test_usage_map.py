"""The usage map: what changes it, what it tells of a change, its arena, and its hash.

Not covered: any order and duplication of reports (tests/property/test_usage_map.py), any moves in
any reports in any order (tests/property/test_usage_map_arena.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Report
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from tests.unit.core.values import key, report, usage

IDLE = usage(0)


def taken(usage_map: UsageMap, report_: Report) -> set[GroupKey]:
    """Let a report in; the groups and kinds whose rates changed."""
    return {usage_map.index.keys[place] for place in usage_map.apply(report_).tolist()}


def small(**bounds: int) -> UsageMap:
    """A map of these bounds."""
    return UsageMap(GroupIndex(replace(BOUNDS.exchange, **bounds)))


def filled(**bounds: int) -> UsageMap:
    usage_map = small(**bounds)
    usage_map.apply(report("b1", usage(10), usage(5, group="trial")))
    usage_map.apply(report("b2", usage(20)))
    return usage_map


def test_rows_are_found_by_group_and_by_broker() -> None:
    usage_map = filled()
    assert usage_map.rows(key()) == {"b1": usage(10), "b2": usage(20)}
    assert usage_map.rows(key("trial")) == {"b1": usage(5, group="trial")}
    assert usage_map.rows_of("b1") == {key(): usage(10), key("trial"): usage(5, group="trial")}
    assert usage_map.brokers() == {"b1", "b2"}


def test_an_idle_row_removes_the_broker_from_that_group_alone() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", IDLE))
    assert dict(usage_map.rows(key())) == {"b2": usage(20)}
    assert set(usage_map.rows_of("b1")) == {key("trial")}


def test_a_broker_may_fill_only_so_much_and_go_on_with_what_it_has() -> None:
    usage_map = filled(rows_max=2)
    assert taken(usage_map, report("b1", usage(1, group="third"), usage(11))) == {key()}
    assert usage_map.rows_of("b1") == {key(): usage(11), key("trial"): usage(5, group="trial")}
    assert dict(usage_map.rows(key("third"))) == {}


# Groups that have no policies here.


def unknown_map() -> UsageMap:
    """A map in which only gold has policies, and a broker may have two rows of other groups."""
    usage_map = small(unknown_rows_max=2)
    usage_map.index.set_known({"gold"})
    return usage_map


def test_of_groups_without_policies_a_broker_may_have_so_many_rows() -> None:
    usage_map = unknown_map()
    rows = [usage(1, group=f"x{place}") for place in range(4)]
    usage_map.apply(report("b1", *rows[:1], usage(9)))
    assert not usage_map.is_partial("b1")
    usage_map.apply(report("b1", *rows, usage(9)))
    assert set(usage_map.rows_of("b1")) == {key("x0"), key("x1"), key()}
    assert usage_map.is_partial("b1")
    # Nor does it get more where others' rows have given the groups their slots.
    usage_map.apply(report("b2", *rows[2:]))
    usage_map.apply(report("b1", *rows))
    assert usage_map.count_of("b1") == 3
    assert not usage_map.is_partial("b2")
    assert not usage_map.is_partial("nobody")


# The arena.


@pytest.mark.slow
def test_rows_that_come_and_go_for_ever_take_no_more_room() -> None:
    usage_map = UsageMap()
    sizes = []
    for turn in range(60):
        for broker in range(20):
            rows = [usage(1 + turn, group=f"g{place}") for place in range(30)]
            usage_map.apply(report(f"c{broker}", *rows))
        for broker in range(20):
            usage_map.remove(f"c{broker}")
        sizes.append(usage_map.nbytes)
    assert sizes[-1] == sizes[5]
    assert usage_map.brokers() == set()
