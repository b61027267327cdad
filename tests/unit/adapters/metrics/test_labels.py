"""Bounding a label's values: who gets a series, who is `other`, and counters that never fall.

The samples of whole scrapes are in test_exposition.
"""

from rgd.adapters.metrics.labels import OTHER, Carried, Places


def scrape(places: Places, *values: str) -> list[str]:
    places.begin()
    shown = [places.shown(value) for value in values]
    places.end()
    return shown


def test_the_first_in_line_get_a_place_and_the_rest_are_other() -> None:
    assert scrape(Places(2), "a", "b", "c", "a") == ["a", "b", OTHER, "a"]


def test_who_has_a_place_keeps_it_whatever_the_order() -> None:
    places = Places(2)
    scrape(places, "a", "b", "c")
    assert scrape(places, "c", "b", "a") == [OTHER, "b", "a"]


def test_a_place_comes_free_with_the_scrape_that_misses_its_owner() -> None:
    places = Places(2)
    scrape(places, "a", "b", "c", "d")
    assert scrape(places, "b", "c", "d") == ["b", OTHER, OTHER]
    assert scrape(places, "b", "c", "d") == ["b", "c", OTHER]


def test_a_scrape_that_is_given_up_takes_nobodys_place() -> None:
    places = Places(1)
    scrape(places, "a")
    places.begin()
    assert scrape(places, "b", "a") == [OTHER, "a"]


def test_one_that_is_called_other_takes_no_place() -> None:
    assert scrape(Places(1), OTHER, "a") == [OTHER, "a"]


def test_a_carried_counter_follows_its_parts_up() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (5, 7, 7, 12)] == [5, 7, 7, 12]


def test_a_carried_counter_keeps_what_has_left() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (10, 4, 6, 0, 3)] == [10, 10, 12, 12, 15]
