"""Columns of rows: what was put in comes out, in order, and equality is of all that they say.

Not covered: bytes (tests/unit/wire); what the broker makes of columns (tests/unit/core/broker).
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import NO_SHARES, ShareColumns
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import COUNT_MAX, Kind, Pair
from tests.support.columns import shares_of

counts = st.integers(0, 9) | st.integers(0, COUNT_MAX)
pairs = st.builds(Pair, counts, counts)
maybe_rates = st.none() | counts
usage_rows = st.builds(
    UsageRow, st.text("ab", max_size=3), st.sampled_from(Kind), counts, pairs, pairs
)
share_rows = st.builds(
    ShareRow,
    usage_rows,
    st.tuples(maybe_rates, maybe_rates),
    st.tuples(maybe_rates, maybe_rates),
    st.sampled_from(SharePolicyName),
    pairs,
    st.booleans(),
    st.just(()),
    pairs,
    pairs,
)

ROW = UsageRow("gold", Kind.PUBLISH, 3, Pair(1, 2), Pair(3, 4))
SHARE_ROW = ShareRow(ROW, (1, None), (None, 0), SharePolicyName.STEAL, Pair(9, 10), sent=False)


@pytest.mark.slow
@given(st.lists(share_rows, max_size=4), st.lists(share_rows, max_size=4))
def test_joined_parts_are_one_after_another(left: list[ShareRow], right: list[ShareRow]) -> None:
    joined = ShareColumns.join([shares_of(*left), NO_SHARES, shares_of(*right)])
    assert list(joined) == left + right
    assert joined == shares_of(*left, *right)


OTHERS = [
    replace(SHARE_ROW, usage=replace(ROW, group="iron")),
    replace(SHARE_ROW, usage=replace(ROW, kind=Kind.DISPATCH)),
    replace(SHARE_ROW, usage=replace(ROW, topics=4)),
    replace(SHARE_ROW, usage=replace(ROW, admitted=Pair(1, 3))),
    replace(SHARE_ROW, usage=replace(ROW, wanted=Pair(4, 4))),
    replace(SHARE_ROW, admitted_total=Pair(6, 6)),
    replace(SHARE_ROW, wanted_total=Pair(7, 9)),
    replace(SHARE_ROW, share=(None, None)),
    replace(SHARE_ROW, quota=(0, 0)),
    replace(SHARE_ROW, policy=SharePolicyName.MAX_MIN),
    replace(SHARE_ROW, refused=Pair(9, 11)),
    replace(SHARE_ROW, sent=True),
]


@pytest.mark.parametrize("other", OTHERS)
def test_columns_that_differ_in_one_thing_are_not_equal(other: ShareRow) -> None:
    assert shares_of(SHARE_ROW) == shares_of(SHARE_ROW)
    assert shares_of(SHARE_ROW) != shares_of(other)
