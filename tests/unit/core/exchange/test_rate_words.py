"""Rows with words in place of rates: the same to everybody who reads them.

Not covered: how they are stored (test_row_store.py), how they are sent (tests/unit/wire/test_rate_columns.py).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.precision import RATES
from rgd.core.exchange.rate_words import (
    coded,
)
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import Kind, Pair

rates = st.sampled_from([0, 0, 1, 999, 1_002, 5_010, int(RATES[-1])])
#: The last are of a release that does not round.
odd_rates = rates | st.sampled_from([1_001, 12_345_678])


def rows_of(rate: st.SearchStrategy[int]) -> st.SearchStrategy[UsageColumns]:
    """Rows with rates from a strategy."""
    row = st.builds(
        UsageRow,
        st.sampled_from(["gold", "silver", "tin"]),
        st.sampled_from(Kind),
        st.integers(0, 3),
        st.builds(Pair, rate, rate),
        st.builds(Pair, rate, rate),
    )
    rows = st.lists(row, max_size=6, unique_by=lambda one: (one.group, one.kind))
    return rows.map(lambda some: UsageColumns.of(*some))


@given(st.lists(st.tuples(rows_of(odd_rates), st.booleans(), st.booleans()), max_size=6))
def test_a_map_holds_the_same_whatever_form_its_rows_come_in(
    reports: list[tuple[UsageColumns, bool, bool]],
) -> None:
    plain, mixed = UsageMap(), UsageMap()
    for sequence, (rows, is_full, is_coded) in enumerate(reports, 1):
        told = coded(rows) if is_coded else rows
        sender = Sender("b1", 1)
        moved = plain.apply(Report(sender, sequence, 1, rows, full=is_full))
        moved_too = mixed.apply(Report(sender, sequence, 1, told, full=is_full))
        assert moved_too.tolist() == moved.tolist()
        assert mixed.rows_of("b1") == plain.rows_of("b1")
        assert mixed.hash_of("b1") == plain.hash_of("b1")
        slots = np.arange(len(plain.index))
        assert mixed.gather(slots).wanted.tolist() == plain.gather(slots).wanted.tolist()
        assert mixed.gather(slots).admitted.tolist() == plain.gather(slots).admitted.tolist()
