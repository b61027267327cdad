"""Pages of names: in order, none repeated, none left out, in slices."""

import math

import pytest
from multidict import MultiDict

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.paging import (
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
