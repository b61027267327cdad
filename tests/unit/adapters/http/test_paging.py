"""Pages of names: in order, none repeated, none left out, in slices."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.paging import (
    LIMIT_DEFAULT,
    MERGED_SLICE,
    NAMES_SLICE,
    Page,
    page_names,
    page_of,
)
from rgd.adapters.http.reply import Call
from rgd.adapters.http.turns import Turns


def call(*said: tuple[str, str]) -> Call:
    return Call({}, {}, b"", MultiDict(said))


@given(
    names=st.lists(st.text("abAB-/", min_size=1, max_size=4)),
    prefix=st.text("ab", max_size=2),
    limit=st.integers(1, 5),
)
async def test_pages_together_are_the_list(names: list[str], prefix: str, limit: int) -> None:
    turns, found, after = Turns(), list[str](), ""
    while True:
        page, has_more = await page_names(names, Page(limit, after, prefix), turns)
        assert len(page) <= limit
        found += page
        if not has_more:
            break
        after = page[-1]

    assert found == sorted({name for name in names if name.startswith(prefix)})


async def test_a_hundred_thousand_names_are_put_in_order_in_slices() -> None:
    turns = Turns()
    names = [f"group-{number:06}" for number in range(100_000)]

    page, has_more = await page_names(reversed(names), Page(100), turns)
    assert (page, has_more) == (names[:100], True)
    slices = math.ceil(len(names) / NAMES_SLICE)
    assert turns.given == slices

    everything, has_more = await page_names(reversed(names), Page(None), turns)
    assert (everything, has_more) == (names, False)
    assert turns.given == 2 * slices + math.ceil(len(names) / MERGED_SLICE)


def test_what_is_not_said_has_its_default() -> None:
    assert page_of(call()) == Page(LIMIT_DEFAULT)
    assert page_of(call(), is_strict=False) == Page(None)
    assert page_of(call(("limit", "7"), ("after", "a"), ("prefix", "b"))) == Page(7, "a", "b")


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
        page_of(call(*said))

    assert str(caught.value).startswith(reason)
    assert len(str(caught.value)) < 200


def test_as_lenient_as_pulsar_passes_over_what_it_does_not_know() -> None:
    assert page_of(call(("x", "1"), ("limit", "1"), ("limit", "2")), is_strict=False) == Page(1)


def test_the_link_to_the_next_page_is_percent_encoded() -> None:
    header = Page(5, "", "a/b").link_after("/v1/groups", "a/b&c>")

    assert header == {"Link": '</v1/groups?limit=5&after=a%2Fb%26c%3E&prefix=a%2Fb>; rel="next"'}
