"""Rows that advertise nothing: when a row is idle."""

from dataclasses import replace

import pytest

from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair

ROW = UsageRow("gold", Kind.PUBLISH, 3, Pair(1, 2), Pair(3, 4))
ZERO = replace(ROW, admitted=Pair(), wanted=Pair())


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


def test_a_row_without_any_rate_is_idle_whatever_its_topics() -> None:
    assert ZERO.is_idle
    assert replace(ZERO, topics=0).is_idle
