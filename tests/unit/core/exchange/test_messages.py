"""Rows that say nothing: when a row is idle, and how one is taken back."""

from dataclasses import replace

import pytest

from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair

ROW = UsageRow("gold", Kind.PUBLISH, 3, Pair(1, 2), Pair(3, 4), Pair(5, 6), Pair(7, 8))
ZERO = ROW.as_idle()


@pytest.mark.parametrize(
    "busy",
    [
        ROW,
        replace(ZERO, wanted=Pair(1, 0)),
        replace(ZERO, wanted=Pair(0, 1)),
        replace(ZERO, admitted=Pair(1, 0)),
        replace(ZERO, admitted=Pair(0, 1)),
    ],
)
def test_a_row_with_any_rate_is_not_idle(busy: UsageRow) -> None:
    assert not busy.is_idle


def test_a_row_is_taken_back_by_one_that_is_idle_and_keeps_the_totals() -> None:
    idle = ROW.as_idle()
    assert idle == replace(ROW, topics=0, admitted=Pair(), wanted=Pair())
    assert idle.is_idle
