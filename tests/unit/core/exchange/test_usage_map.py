"""The usage map: what changes it, what it tells of a change, and its hash.

Not covered: any order and duplication of reports (tests/property/test_usage_map.py).
"""

from dataclasses import replace

import pytest

from rgd.core.exchange import usage_map as usage_map_module
from rgd.core.exchange.messages import UsageRow
from rgd.core.exchange.usage_map import UsageMap, told_hash
from rgd.core.units import Kind, Pair
from tests.unit.core.values import key, report, usage

IDLE = usage(0)


def filled() -> UsageMap:
    usage_map = UsageMap()
    usage_map.apply(report("b1", usage(10), usage(5, group="trial")))
    usage_map.apply(report("b2", usage(20)))
    return usage_map


def test_rows_are_found_by_group_and_by_broker() -> None:
    usage_map = filled()
    assert usage_map.rows(key()) == {"b1": usage(10), "b2": usage(20)}
    assert usage_map.rows(key("trial")) == {"b1": usage(5, group="trial")}
    assert usage_map.rows_of("b1") == {key(): usage(10), key("trial"): usage(5, group="trial")}
    assert usage_map.brokers() == {"b1", "b2"}


def test_the_two_kinds_of_a_group_are_two_rows() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", usage(7, kind=Kind.DISPATCH)))
    assert usage_map.rows(key(kind=Kind.DISPATCH)) == {"b1": usage(7, kind=Kind.DISPATCH)}
    assert usage_map.rows(key())["b1"] == usage(10)


def test_what_nobody_told_is_empty() -> None:
    assert dict(UsageMap().rows(key())) == {}
    assert dict(UsageMap().rows_of("b1")) == {}
    assert UsageMap().remove("b1") == set()


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        pytest.param(usage(10), set(), id="the-same"),
        pytest.param(usage(10, topics=9, total=99), set(), id="no-rate"),
        pytest.param(usage(11, 10), {key()}, id="wanted"),
        pytest.param(usage(10, 9), {key()}, id="admitted"),
        pytest.param(usage(10, size=1), {key()}, id="bytes"),
        pytest.param(usage(1, group="new"), {key("new")}, id="new"),
        pytest.param(usage(0), {key()}, id="idle"),
        pytest.param(usage(0, group="new"), set(), id="idle-and-unknown"),
    ],
)
def test_a_change_of_rates_is_told(row: UsageRow, changed: set[object]) -> None:
    usage_map = filled()
    assert usage_map.apply(report("b1", row)) == changed
    assert usage_map.rows_of("b1").get(key(row.group)) == (None if row.is_idle else row)


def test_an_idle_row_removes_the_broker_from_that_group_alone() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", IDLE))
    assert dict(usage_map.rows(key())) == {"b2": usage(20)}
    assert set(usage_map.rows_of("b1")) == {key("trial")}


def test_a_full_report_is_all_there_is() -> None:
    usage_map = filled()
    full = report("b1", usage(3, group="new"), full=True)
    assert usage_map.apply(full) == {key(), key("trial"), key("new")}
    assert set(usage_map.rows_of("b1")) == {key("new")}
    assert usage_map.apply(full) == set()
    assert usage_map.rows(key()) == {"b2": usage(20)}


def test_an_idle_row_in_a_full_report_removes_as_well() -> None:
    usage_map = filled()
    idle = report("b1", IDLE, usage(5, group="trial"), full=True)
    assert usage_map.apply(idle) == {key()}
    assert set(usage_map.rows_of("b1")) == {key("trial")}


def test_a_broker_that_goes_takes_its_rows_along() -> None:
    usage_map = filled()
    assert usage_map.remove("b1") == {key(), key("trial")}
    assert dict(usage_map.rows(key("trial"))) == {}
    assert usage_map.rows(key()) == {"b2": usage(20)}
    assert usage_map.brokers() == {"b2"}
    assert dict(usage_map.rows_of("b1")) == {}


def test_who_took_everything_back_has_no_row() -> None:
    usage_map = filled()
    usage_map.apply(report("b2", IDLE))
    assert usage_map.brokers() == {"b1"}


def test_nothing_is_kept_of_what_is_gone() -> None:
    usage_map = filled()
    usage_map.apply(report("b1", full=True))
    usage_map.remove("b1")
    usage_map.remove("b2")
    assert not usage_map._by_key
    assert not usage_map._by_broker


def test_a_broker_may_fill_only_so_much_and_go_on_with_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage_map_module, "ROWS_MAX", 2)
    usage_map = filled()
    assert usage_map.apply(report("b1", usage(1, group="third"), usage(11))) == {key()}
    assert usage_map.rows_of("b1") == {key(): usage(11), key("trial"): usage(5, group="trial")}
    assert dict(usage_map.rows(key("third"))) == {}


ROWS = [usage(10), usage(5, group="trial"), usage(7, kind=Kind.DISPATCH)]


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
    assert len({told_hash(rows) for rows in different}) == len(different)


def test_the_hash_knows_no_order_and_no_totals() -> None:
    again = [usage(7, kind=Kind.DISPATCH, total=5), usage(5, group="trial"), usage(10, total=99)]
    assert told_hash(again) == told_hash(ROWS)


def test_no_rows_hash_to_zero_and_many_fit_63_bits() -> None:
    assert told_hash([]) == 0
    rows = [usage(10, group=f"g{place}") for place in range(50)]
    assert all(0 < told_hash(rows[: count + 1]) < 1 << 63 for count in range(50))
