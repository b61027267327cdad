"""Rows by number: read and written alike, whether the numbers are a run or not.

Not covered: which rows a report is about (test_usage_map.py, test_usage_map_steady.py).
"""

import numpy as np
import pytest

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.precision import RATES as RATE_TABLE
from rgd.core.exchange.rate_words import joined
from rgd.core.exchange.row_store import Amounts, BrokerRows, RowStore
from rgd.core.runs import Places

COUNT = 6
TOPICS = np.arange(1, COUNT + 1)
#: Admitted messages and bytes, wanted messages and bytes; all are rates that have codes.
RATES = np.arange(4 * COUNT).reshape(4, COUNT)
#: Whether rows of a test come with words or with rates.
FORMS = ("words", "rates", "mixed")


def amounts(form: str, topics: Ints, rates: Ints) -> Amounts:
    """Values of rows in one of two forms."""
    if form == "rates":
        return Amounts(topics, None, rates)
    codes = RATE_TABLE.searchsorted(rates).astype(np.uint16)
    return Amounts(topics, joined(codes[:2].reshape(-1), codes[2:].reshape(-1)), None)


def store(form: str) -> RowStore:
    """A store with a few rows of one broker; of mixed ones every other has no words."""
    made = RowStore()
    rows = made.new(0, np.arange(100, 100 + COUNT))
    assert rows.tolist() == list(range(COUNT))
    made.write(rows, amounts("words" if form == "mixed" else form, TOPICS, RATES))
    if form == "mixed":
        made.write(rows[::2], amounts("rates", TOPICS[::2], RATES[:, ::2]))
    return made


def test_the_rows_of_a_holding_span_a_run_in_whatever_order_they_were_told() -> None:
    holding = BrokerRows()
    assert len(holding.rows[holding.span]) == 0
    holding.add(np.array([5, 1, 3]), np.array([10, 11, 12]))
    assert holding.span == slice(10, 13)
    holding.add(np.array([4]), np.array([14]))
    assert sorted(np.arange(20)[holding.span].tolist()) == [10, 11, 12, 14]


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([1, 2, 3]), np.array([4, 0, 2])])
@pytest.mark.parametrize("told", FORMS[:2])
@pytest.mark.parametrize("held", FORMS)
def test_what_is_written_into_rows_is_in_those_rows_alone(
    rows: Places, held: str, told: str
) -> None:
    written = store(held)
    topics, rates = np.array([7, 8, 9]), np.arange(1000, 1120, 10).reshape(4, 3)
    written.write(rows, amounts(told, topics, rates))
    expected_topics, expected = TOPICS.copy(), RATES.copy()
    expected_topics[rows], expected[:, rows] = topics, rates
    assert written.topics[:COUNT].tolist() == expected_topics.tolist()
    assert written.rates(slice(0, COUNT)).tolist() == expected.tolist()
    assert written.rates(np.array([5, 0])).tolist() == expected[:, [5, 0]].tolist()


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([4, 0, 2])])
@pytest.mark.parametrize("told", FORMS[:2])
@pytest.mark.parametrize("held", FORMS)
def test_rows_differ_by_demand_or_by_admitted_work_and_not_by_topics(
    rows: Places, held: str, told: str
) -> None:
    kept, nothing = store(held), np.zeros(3, np.int64)
    for column, differing in enumerate(("admitted", "admitted", "wanted", "wanted")):
        rates = RATES[:, rows].copy()
        rates[column, 1] += 1
        found = kept.differs(rows, amounts(told, nothing, rates))
        differs = dict(zip(("wanted", "admitted"), found, strict=True))
        assert differs.pop(differing).tolist() == [False, True, False]
        assert [flags.any() for flags in differs.values()] == [False]
    assert not np.any(kept.differs(rows, amounts(told, nothing, RATES[:, rows])))


def test_rates_without_words_take_memory_only_once_there_are_some() -> None:
    kept = store("words")
    before = kept.nbytes
    kept.write(slice(0, 1), amounts("rates", TOPICS[:1], RATES[:, :1]))
    assert kept.nbytes == before + 4 * 8 * 256
