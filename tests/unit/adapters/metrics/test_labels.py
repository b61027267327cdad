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


def test_who_has_a_series_keeps_it_whatever_the_order() -> None:
    own = OwnSeries(2)
    scrape(own, "a", "b", "c")
    assert scrape(own, "c", "b", "a") == [OTHER, "b", "a"]


def test_a_series_comes_free_with_the_scrape_that_misses_its_value() -> None:
    own = OwnSeries(2)
    scrape(own, "a", "b", "c", "d")
    assert scrape(own, "b", "c", "d") == ["b", OTHER, OTHER]
    assert scrape(own, "b", "c", "d") == ["b", "c", OTHER]


def test_a_scrape_that_is_given_up_frees_nothing() -> None:
    own = OwnSeries(1)
    scrape(own, "a")
    own.begin()
    assert scrape(own, "b", "a") == [OTHER, "a"]


def test_one_that_is_called_other_takes_no_series() -> None:
    assert scrape(OwnSeries(1), OTHER, "a") == [OTHER, "a"]


def test_a_carried_counter_follows_its_parts_up() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (5, 7, 7, 12)] == [5, 7, 7, 12]


def test_a_carried_counter_keeps_what_has_left() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (10, 4, 6, 0, 3)] == [10, 10, 12, 12, 15]
