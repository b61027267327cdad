"""Pages of names: in order, none repeated, none left out."""

import pytest
from multidict import MultiDict

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.paging import Page, WholePage, page_names, page_of


def test_names_are_in_order_each_once_and_the_page_says_whether_there_are_more() -> None:
    names = [f"group-{number}" for number in range(1000, 1100)]
    mixed = ["", *reversed(names), *names]

    assert page_names(mixed, Page(100)) == (names, False)
    assert page_names(mixed, Page(99)) == (names[:99], True)
    assert page_names(mixed, WholePage(after=names[7])) == (names[8:], False)
    assert page_names(mixed, Page(2, prefix="group-105")) == (names[50:52], True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([("limit", "0")], "limit: expected an integer from 1 to 1000, got 0"),
        ([("limit", "1001")], "limit: expected an integer from 1 to 1000, got 1001"),
        ([("limit", "-1")], "limit: expected"),
        ([("limit", "1e3")], "limit: expected"),
        ([("limit", "٣")], "limit: expected"),
        ([("limit", "9" * 5000)], "limit: expected"),
        ([("limit", "1"), ("limit", "2")], "limit: expected once"),
        ([("x" * 5000, "1")], f"{'x' * 60}...: unknown parameter"),
    ],
)
def test_a_parameter_at_fault_is_named_and_cut(said: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(BadBody) as caught:
        page_of(MultiDict(said))

    assert str(caught.value).startswith(reason)
    assert len(str(caught.value)) < 200
