"""Bounding a label's values: who gets a series, who is `other`, and counters that never fall.

The samples of whole scrapes are in test_exposition.
"""

from rgd.adapters.metrics.labels import OTHER, Carried, Places


def shown(places: Places, *values: str) -> list[str]:
    return [places.shown(value) for value in values]


def test_the_first_in_line_get_a_place_and_the_rest_are_other() -> None:
    places = Places(2)
    places.settle(["a", "b", "c"])
    assert shown(places, "a", "b", "c") == ["a", "b", OTHER]


def test_who_has_a_place_keeps_it_whatever_the_order() -> None:
    places = Places(2)
    places.settle(["a", "b", "c"])
    places.settle(["c", "b", "a"])
    assert shown(places, "a", "b", "c") == ["a", "b", OTHER]


def test_a_place_comes_free_when_its_owner_is_gone() -> None:
    places = Places(2)
    places.settle(["a", "b", "c", "d"])
    places.settle(["b", "c", "d"])
    assert shown(places, "b", "c", "d") == ["b", "c", OTHER]


def test_one_that_is_called_other_takes_no_place() -> None:
    places = Places(1)
    places.settle([OTHER, "a"])
    assert shown(places, OTHER, "a") == [OTHER, "a"]


def test_a_carried_counter_follows_its_parts_up() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (5, 7, 7, 12)] == [5, 7, 7, 12]


def test_a_carried_counter_keeps_what_has_left() -> None:
    carried = Carried()
    assert [carried.total(present) for present in (10, 4, 6, 0, 3)] == [10, 10, 12, 12, 15]
