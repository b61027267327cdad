"""Brokers that tell of the same groups again and again, and what of them is hashed when.

A steady broker's reports have numbers in one table of names (`rgd.wire.name_dictionary`), and so have these.
Not covered: any such reports in any order (tests/property/test_usage_map_arena.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.columns import Codes, Ints, UsageColumns
from rgd.core.exchange.messages import Report
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.rows_hash import advertised_hash
from rgd.core.exchange.usage_map import UsageMap
from tests.unit.core import values
from tests.unit.core.values import held, key, usage

COUNT = BOUNDS.exchange.hashed_rows_max + 44


def report(broker: str, *rows: UsageRow, **changes: Any) -> Report:
    """A report with numbers for names, of a table that was never seen before."""
    made = values.report(broker, *rows, **changes)
    names = NumberedNames(made.rows.groups, np.arange(len(rows)))
    return replace(made, rows=replace(made.rows, groups=names))


def many(wanted: float, *, first: int = 0, count: int = COUNT) -> list[UsageRow]:
    """Rows of so many groups, of which each wants something else."""
    return [usage(wanted + place, group=f"g{place}") for place in range(first, first + count)]


def again(before: Report, rows: list[UsageRow], **changes: object) -> Report:
    """Another report of the same groups, with numbers in the same table of their names."""
    told = UsageColumns.of(*rows)
    assert told.groups == tuple(before.rows.groups)
    same = replace(told, groups=before.rows.groups)
    return replace(before, rows=same, **changes)  # type: ignore[arg-type]


def check(usage_map: UsageMap, broker: str, rows: list[UsageRow]) -> None:
    """What is held of a broker is what it told."""
    assert usage_map.rows_of(broker) == {key(row.group): held(row) for row in rows}
    assert usage_map.hash_of(broker) == advertised_hash(rows)


def changed(usage_map: UsageMap, told: Report) -> set[str]:
    """Groups whose rates a report changes."""
    return {usage_map.index.keys[place].group for place in usage_map.apply(told).tolist()}


@pytest.mark.parametrize("full", [False, True])
def test_the_same_groups_told_again_are_held_as_told_last(full: bool) -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    usage_map.apply(first)
    for wanted in (2, 3):
        rows = many(wanted)
        assert changed(usage_map, again(first, rows, full=full)) == {row.group for row in rows}
        check(usage_map, "b1", rows)
        assert changed(usage_map, again(first, rows, full=full)) == set()


def test_of_the_same_groups_those_are_changed_whose_rates_are_other_ones() -> None:
    usage_map = UsageMap()
    rows = many(1)
    first = report("b1", *rows)
    usage_map.apply(first)
    rows[3] = usage(999, group="g3")
    rows[7] = replace(rows[7], topics=5)
    rows[-1] = usage(1, 0, group=rows[-1].group)
    assert changed(usage_map, again(first, rows)) == {"g3", rows[-1].group}
    check(usage_map, "b1", rows)


def test_rows_that_lie_apart_and_in_another_order_are_each_held_as_told() -> None:
    usage_map = UsageMap()
    for part in range(0, COUNT, 100):
        for broker in ("b1", "b2"):
            usage_map.apply(report(broker, *many(1, first=part, count=100)))
    told = {broker: report(broker, *reversed(many(1, count=300))) for broker in ("b1", "b2")}
    for turn in range(3):
        for broker, wanted in (("b1", 10 + turn), ("b2", 20 + turn)):
            rows = many(wanted, count=300)
            usage_map.apply(again(told[broker], rows[::-1]))
    for broker, wanted in (("b1", 12), ("b2", 22)):
        check(usage_map, broker, many(wanted, count=300))
    assert usage_map.rows(key("g9")) == {
        "b1": held(usage(21, group="g9")),
        "b2": held(usage(31, group="g9")),
    }


def test_rows_that_went_meanwhile_are_not_written_to() -> None:
    """Their numbers are another broker's by then."""
    usage_map = UsageMap()
    first = report("b1", *many(1))
    usage_map.apply(first)
    usage_map.apply(again(first, many(2)))
    taken_back = [usage(0, group=f"g{place}") for place in range(20, 60)]
    usage_map.apply(report("b1", *taken_back))
    other = [usage(7, group=f"other{place}") for place in range(40)]
    usage_map.apply(report("b2", *other))
    usage_map.apply(again(first, many(3)))
    check(usage_map, "b1", many(3))
    check(usage_map, "b2", other)


def test_a_broker_that_was_forgotten_and_says_the_same_is_held_anew() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    for _ in range(2):
        usage_map.apply(first)
    usage_map.remove("b1")
    other = many(5)
    usage_map.apply(report("b2", *other))
    assert changed(usage_map, first) == {row.group for row in many(1)}
    check(usage_map, "b1", many(1))
    check(usage_map, "b2", other)


def test_a_full_report_of_the_same_groups_takes_back_what_came_meanwhile() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    usage_map.apply(first)
    usage_map.apply(report("b1", usage(9, group="late")))
    assert changed(usage_map, again(first, many(1), full=True)) == {"late"}
    check(usage_map, "b1", many(1))


def test_a_row_that_says_idle_goes_however_steady_the_others_are_and_comes_again() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    for _ in range(2):
        usage_map.apply(first)
    rows = many(1)
    idle = [*rows[:5], usage(0, group="g5"), *rows[6:]]
    assert changed(usage_map, again(first, idle)) == {"g5"}
    check(usage_map, "b1", rows[:5] + rows[6:])
    # It gets the number of the row that went.
    usage_map.apply(report("b2", usage(9)))
    assert changed(usage_map, again(first, rows)) == {"g5"}
    check(usage_map, "b1", rows)
    check(usage_map, "b2", [usage(9)])


def test_a_name_is_looked_up_once_whatever_part_of_the_groups_a_report_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    looked_up: list[str] = []
    find_all = usage_map.index.find_all

    def counted(groups: Sequence[str], kinds: Codes) -> Ints:
        looked_up.extend(groups)
        return find_all(groups, kinds)

    monkeypatch.setattr(usage_map.index, "find_all", counted)
    usage_map.apply(first)
    assert set(looked_up) == set(first.rows.groups)
    looked_up.clear()
    for begin in range(0, COUNT, 50):
        rows = many(2, first=begin, count=min(50, COUNT - begin))
        some = first.rows.groups[begin : begin + 50]
        told = replace(first, rows=replace(UsageColumns.of(*rows), groups=some))
        assert len(usage_map.apply(told)) == len(rows)
    assert looked_up == []
    check(usage_map, "b1", many(2))


def test_a_number_whose_slot_was_freed_is_not_taken_for_the_group_that_has_it_now() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1, count=3))
    usage_map.apply(first)
    usage_map.remove("b1")
    usage_map.number_of("b1")
    usage_map.apply(first)
    usage_map.apply(again(first, [usage(0, group=f"g{place}") for place in range(3)]))
    usage_map.index.free(np.arange(3))
    other = key("other")
    assert usage_map.index.slot(other) in range(3)
    rows = many(5, count=3)
    usage_map.apply(again(first, rows))
    check(usage_map, "b1", rows)
    assert usage_map.rows(other) == {}


def test_an_empty_report_says_nothing_and_a_full_one_takes_everything_back() -> None:
    usage_map = UsageMap()
    usage_map.apply(report("b1", *many(1)))
    assert usage_map.apply(report("b1")).tolist() == []
    assert usage_map.count_of("b1") == COUNT
    assert len(usage_map.apply(report("b1", full=True))) == COUNT
    assert (usage_map.count_of("b1"), usage_map.hash_of("b1")) == (0, 0)


# What is hashed.


def test_many_rows_are_hashed_when_it_is_asked_for_and_once() -> None:
    usage_map = UsageMap()
    rows = many(1)
    usage_map.apply(report("b1", *rows))
    assert not usage_map.is_hashed("b1")
    assert usage_map.hash_of("b1") == advertised_hash(rows)
    assert usage_map.is_hashed("b1")
    usage_map.apply(report("b1", *many(2)))
    assert not usage_map.is_hashed("b1")
    usage_map.apply(report("b1", full=True))
    usage_map.apply(report("b1", usage(1)))
    assert usage_map.is_hashed("b1")
    assert usage_map.hash_of("b1") == advertised_hash([usage(1)])


def test_a_hash_that_is_known_follows_few_rows() -> None:
    usage_map = UsageMap()
    rows = many(1)
    usage_map.apply(report("b1", *rows))
    usage_map.hash_of("b1")
    few = [*many(500, count=100), usage(0, group="g200"), usage(4, group="late")]
    usage_map.apply(report("b1", *few))
    assert usage_map.is_hashed("b1")
    check(usage_map, "b1", [*few[:100], *rows[100:200], *rows[201:], few[-1]])


def test_few_rows_do_not_make_a_hash_known_that_is_not() -> None:
    usage_map = UsageMap()
    usage_map.apply(report("b1", *many(1)))
    usage_map.apply(report("b1", usage(500, group="g0")))
    assert not usage_map.is_hashed("b1")
    check(usage_map, "b1", [usage(500, group="g0"), *many(1)[1:]])


def test_a_broker_of_few_rows_or_none_is_always_hashed() -> None:
    usage_map = UsageMap()
    assert usage_map.is_hashed("b1")
    rows = many(1, count=BOUNDS.exchange.hashed_rows_max)
    usage_map.apply(report("b1", *rows))
    assert usage_map.is_hashed("b1")
    assert usage_map.hash_of("b1") == advertised_hash(rows)
    usage_map.remove("b1")
    assert usage_map.is_hashed("b1")


def test_columns_that_lie_the_other_way_are_taken_in_alike() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    usage_map.apply(first)
    told = again(first, many(2))
    turned = replace(
        told.rows,
        admitted=np.asfortranarray(told.rows.admitted),
        wanted=np.asfortranarray(told.rows.wanted),
    )
    assert len(usage_map.apply(replace(told, rows=turned))) == COUNT
    check(usage_map, "b1", many(2))


def test_what_is_told_of_few_groups_in_between_is_held_too() -> None:
    usage_map = UsageMap()
    first = report("b1", *many(1))
    usage_map.apply(first)
    rows = many(2)
    assert changed(usage_map, report("b1", rows[5], sequence=2)) == {rows[5].group}
    expected = many(1)
    expected[5] = rows[5]
    check(usage_map, "b1", expected)
    assert changed(usage_map, again(first, rows)) == {row.group for row in rows} - {rows[5].group}
    check(usage_map, "b1", rows)
