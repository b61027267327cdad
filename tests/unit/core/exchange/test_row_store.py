"""Rows by number: read and written alike, whether the numbers are a run or not.

Not covered: which rows a report is about (test_usage_map.py, test_usage_map_steady.py).
"""

import numpy as np
import pytest

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.precision import RATES as RATE_TABLE
from rgd.core.exchange.rate_words import joined
from rgd.core.exchange.row_store import Amounts, RowStore
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
