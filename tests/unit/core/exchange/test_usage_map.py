"""The usage map: what changes it, what it tells of a change, its arena, and its hash.

Not covered: any order and duplication of reports (tests/property/test_usage_map.py), any moves in
the arena (tests/property/test_usage_map_arena.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Report
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import Kind, Pair
from tests.support.columns import advertised_hash
from tests.unit.core.values import held, key, report, usage

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
    assert usage_map.rows(key()) == {"b1": held(usage(10)), "b2": held(usage(20))}
    assert usage_map.rows(key("trial")) == {"b1": held(usage(5, group="trial"))}
    assert usage_map.rows_of("b1") == {
        key(): held(usage(10)),
        key("trial"): held(usage(5, group="trial")),
    }
    assert usage_map.brokers() == {"b1", "b2"}


def test_an_idle_row_removes_the_broker_from_that_group_alone() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", IDLE))
    assert dict(usage_map.rows(key())) == {"b2": held(usage(20))}
    assert set(usage_map.rows_of("b1")) == {key("trial")}


def test_nothing_is_kept_of_what_is_gone() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", full=True))
    usage_map.remove("b1")
    usage_map.remove("b2")
    assert usage_map.brokers() == set()
    assert usage_map.live == 0
    usage_map.validate()


def test_a_broker_may_fill_only_so_much_and_go_on_with_what_it_has() -> None:
    usage_map = filled(rows_max=2)
    assert taken(usage_map, report("b1", usage(1, group="third"), usage(11))) == {key()}
    assert usage_map.rows_of("b1") == {
        key(): held(usage(11)),
        key("trial"): held(usage(5, group="trial")),
    }
    assert dict(usage_map.rows(key("third"))) == {}


@pytest.mark.parametrize("full", [False, True])
def test_a_broker_that_tells_too_much_is_known_by_its_hash(full: bool) -> None:
    usage_map = small(rows_max=2)
    rows = [usage(1, group=group) for group in ("a", "b", "c")]
    taken(usage_map, report("b1", *rows, full=full))
    assert usage_map.count_of("b1") == 2
    assert usage_map.hash_of("b1") == advertised_hash(rows[:2]) != advertised_hash(rows)
    # Others have room of their own.
    assert taken(usage_map, report("b2", *rows[1:])) == {key("b"), key("c")}


def test_what_goes_in_a_report_makes_room_for_what_comes_in_it() -> None:
    usage_map = filled(rows_max=2)
    assert taken(usage_map, report("b1", usage(1, group="third"), IDLE)) == {key(), key("third")}
    assert set(usage_map.rows_of("b1")) == {key("third"), key("trial")}


def test_groups_for_which_there_is_no_place_are_not_kept_and_touch_no_others() -> None:
    usage_map = filled(slots_max=2)
    late = [usage(1, group="late"), usage(2, group="later"), usage(11)]
    assert taken(usage_map, report("b1", *late)) == {key()}
    assert dict(usage_map.rows(key("late"))) == {}
    assert usage_map.rows_of("b1") == {
        key(): held(usage(11)),
        key("trial"): held(usage(5, group="trial")),
    }
    # The hash says that something is missing.
    assert usage_map.hash_of("b1") == advertised_hash([usage(11), usage(5, group="trial")])
    full = report("b1", *late, usage(0, group="latest"), full=True)
    assert taken(usage_map, full) == {key("trial")}
    assert usage_map.count_of("b1") == 1


def test_a_group_for_which_there_is_no_place_is_not_taken_for_the_last_that_has_one() -> None:
    count = len(GroupIndex().hashes)
    usage_map = small(slots_max=count)
    rows = [usage(1 + place, group=f"g{place}") for place in range(count)]
    usage_map.apply(report("b1", *rows))
    assert taken(usage_map, report("b1", usage(99, group="late"))) == set()
    assert taken(usage_map, report("b1", usage(0, group="late"))) == set()
    assert usage_map.hash_of("b1") == advertised_hash(rows)
    assert usage_map.rows_of("b1") == {key(row.group): held(row) for row in rows}


def test_a_map_shares_the_places_that_it_was_given() -> None:
    """An index of nothing is false, too."""
    index = GroupIndex()
    usage_map = UsageMap(index)
    usage_map.apply(report("b1", usage(1)))
    assert usage_map.index is index
    assert index.keys == [key()]


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


def test_a_whole_state_that_fits_is_not_partial_any_more() -> None:
    usage_map = unknown_map()
    rows = [usage(1, group=f"x{place}") for place in range(6)]
    usage_map.apply(report("b1", *rows[:4]))
    # Other ones in place of those that it had: they count no more.
    usage_map.apply(report("b1", *rows[4:], full=True))
    assert set(usage_map.rows_of("b1")) == {key("x4"), key("x5")}
    assert not usage_map.is_partial("b1")
    usage_map.apply(report("b1", *rows[:4]))
    assert usage_map.is_partial("b1")
    usage_map.apply(report("b1", *rows[4:], full=True))
    assert not usage_map.is_partial("b1")


def test_what_is_introduced_ahead_gets_no_more_slots_than_it_may() -> None:
    usage_map = unknown_map()
    rows = report("b1", *(usage(1, group=f"x{place}") for place in range(5)), usage(1), full=True)
    for begin in range(6):
        usage_map.introduce(rows.rows, begin, begin + 1)
    assert usage_map.index.given == 3
    assert usage_map.index.find(key()) is not None


def test_rows_that_say_nothing_get_no_slot() -> None:
    usage_map = UsageMap()
    usage_map.apply(report("b1", *(usage(0, group=f"x{place}") for place in range(5)), usage(1)))
    assert usage_map.index.given == 1


def test_the_number_of_a_broker_that_is_removed_is_given_again() -> None:
    usage_map = filled()
    assert usage_map.brokers_numbered == 2
    for name in ("b3", "b4", "b5"):
        usage_map.remove("b1")
        usage_map.remove(name)
        usage_map.apply(report(name, usage(3, group="trial")))
        usage_map.remove(name)
    usage_map.apply(report("b6", usage(4)))
    assert usage_map.brokers_numbered == 2
    assert usage_map.rows(key()) == {"b2": held(usage(20)), "b6": held(usage(4))}
    assert usage_map.rows_of("b1") == {}
    assert usage_map.brokers() == {"b2", "b6"}


def test_slots_that_were_freed_are_not_taken_for_the_names_they_had() -> None:
    """A report of the same names is not looked up again, unless slots were freed meanwhile."""
    usage_map = UsageMap()
    many = report("b1", *(usage(1, group=f"g{place:03}") for place in range(100)))
    usage_map.apply(many)
    usage_map.apply(many)
    idle = replace(
        many,
        rows=replace(
            many.rows,
            wanted=np.zeros_like(many.rows.wanted),
            admitted=np.zeros_like(many.rows.wanted),
        ),
    )
    usage_map.apply(idle)
    usage_map.index.free(np.arange(100))
    usage_map.apply(report("b2", *(usage(2, group=f"h{place:03}") for place in range(100))))
    usage_map.apply(many)
    assert usage_map.rows_of("b1") == {key(row.group): held(row) for row in many.rows}
    assert usage_map.rows(key("h000")) == {"b2": held(usage(2, group="h000"))}


# The arena.


def test_a_broker_keeps_its_number_when_it_goes_and_comes_back() -> None:
    usage_map = filled()
    number = usage_map.number_of("b1")
    usage_map.remove("b1")
    assert usage_map.number_of("b1") == number
    assert usage_map.number_of("b9") == usage_map.brokers_numbered - 1
    assert usage_map.brokers() == {"b2"}


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


def test_groups_that_went_are_kept_no_more() -> None:
    usage_map = UsageMap()
    rows: list[UsageRow] = []
    for turn in range(50):
        rows = [usage(1, group=f"g{turn}-{place}") for place in range(200)]
        for broker in ("b1", "b2"):
            usage_map.apply(report(broker, *rows, full=True))
    assert usage_map.live == 400
    assert set(usage_map.rows_of("b2")) == {key(row.group) for row in rows}


ROWS = [usage(10), usage(5, group="trial"), usage(7, kind=Kind.DISPATCH)]


def test_the_hash_of_a_broker_is_that_of_what_it_told_however_it_was_told() -> None:
    usage_map = UsageMap()
    usage_map.apply(report("b1", usage(99), usage(5, group="trial"), usage(1, group="gone")))
    usage_map.apply(report("b1", ROWS[2], ROWS[0], usage(0, group="gone")))
    assert usage_map.hash_of("b1") == advertised_hash(ROWS)
    assert usage_map.hash_of("nobody") == 0
    usage_map.remove("b1")
    assert usage_map.hash_of("b1") == 0


def test_the_hash_tells_any_difference_that_lasts() -> None:
    different = [
        [],
        ROWS,
        ROWS[:2],
        [usage(10, group="other"), *ROWS[1:]],
        [usage(10, kind=Kind.DISPATCH), *ROWS[1:]],
        [usage(10, topics=2), *ROWS[1:]],
        [usage(10, 9), *ROWS[1:]],
        [usage(11, 10), *ROWS[1:]],
        [usage(10, size=1), *ROWS[1:]],
        [replace(usage(10), admitted=Pair(10_000, 1)), *ROWS[1:]],
    ]
    assert len({advertised_hash(rows) for rows in different}) == len(different)


def test_the_hash_knows_no_order() -> None:
    again = [usage(7, kind=Kind.DISPATCH), usage(5, group="trial"), usage(10)]
    assert advertised_hash(again) == advertised_hash(ROWS)


def test_no_rows_hash_to_zero_and_many_fit_63_bits() -> None:
    assert advertised_hash([]) == 0
    rows = [usage(10, group=f"g{place}") for place in range(50)]
    assert all(0 < advertised_hash(rows[: count + 1]) < 1 << 63 for count in range(50))
