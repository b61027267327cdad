"""Bounding a label's values: who gets a series, who is `other`, and counters that never fall.

The samples of whole scrapes are in test_exposition.
"""

from rgd.adapters.metrics.labels import OTHER, Carried, OwnSeries


def scrape(own: OwnSeries, *values: str) -> list[str]:
    own.begin()
    shown = [own.shown(value) for value in values]
    own.end()
    return shown


def test_the_first_in_line_get_series_and_the_rest_are_other() -> None:
    assert scrape(OwnSeries(2), "a", "b", "c", "a") == ["a", "b", OTHER, "a"]


def test_a_carried_counter_keeps_what_has_left() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (10, 4, 6, 0, 3)] == [10, 10, 12, 12, 15]
