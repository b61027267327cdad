"""The laws of docs/architecture.md that a share policy keeps by itself, one group at a time: 1, 2 and 3.

Not covered: laws that need time (4, 6), which tests/simulation covers, and max-min of many
groups in two dimensions (test_shares_columns.py).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.apportion import by_weight
from rgd.core.shares.model import PPM, Row
from rgd.core.shares.pip82 import USAGE_POLICIES, share_by_usage
from rgd.core.shares.registry import allocate
from rgd.core.units import QUOTA_MAX, Pair, to_milli
from tests.support import pip82_reference
from tests.support.pip82_reference import floors

QUOTAS = st.integers(0, 10**6) | st.integers(0, to_milli(QUOTA_MAX))
RATES = st.just(0) | st.integers(0, 10**6) | st.integers(0, to_milli(QUOTA_MAX))
FLOORS_PPM = st.sampled_from([0, 10_000, 100_000, PPM])
POLICIES = st.sampled_from(list(SharePolicyName))


@st.composite
def rows_of(draw: st.DrawFn) -> list[Row]:
    names = draw(
        st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=12, unique=True)
    )
    weights = st.integers(1, 10**6)
    return [
        Row(name, Pair(draw(RATES), draw(RATES)), Pair(draw(RATES)), draw(weights))
        for name in names
    ]


def shares_of(
    policy: SharePolicyName, quota: int, rows: list[Row], *, floor_ppm: int
) -> tuple[int, ...]:
    """Shares of messages, where bytes are unlimited."""
    shares = allocate(policy, Rates(quota), rows, floor_ppm=floor_ppm)
    return tuple(share.messages for share in shares if share.messages is not None)


@given(policy=POLICIES, quota=QUOTAS, rows=rows_of(), floor_ppm=FLOORS_PPM)
def test_every_live_broker_has_its_floor(
    policy: SharePolicyName, quota: int, rows: list[Row], floor_ppm: int
) -> None:
    shares = shares_of(policy, quota, rows, floor_ppm=floor_ppm)
    assert min(shares) >= min(floors(quota, len(rows), floor_ppm))


@given(policy=POLICIES, quota=QUOTAS, rows=rows_of(), data=st.data())
def test_the_order_of_rows_changes_nothing(
    policy: SharePolicyName, quota: int, rows: list[Row], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    shares = dict(zip(rows, shares_of(policy, quota, rows, floor_ppm=10_000), strict=True))
    again = dict(zip(shuffled, shares_of(policy, quota, shuffled, floor_ppm=10_000), strict=True))
    assert shares == again


@given(quota=QUOTAS, rows=rows_of(), floor_ppm=FLOORS_PPM)
def test_no_broker_is_below_its_part_while_another_has_more(
    quota: int, rows: list[Row], floor_ppm: int
) -> None:
    """Law 3, floors apart: compare what each has above its floor, by weight."""
    shares = shares_of(SharePolicyName.MAX_MIN, quota, rows, floor_ppm=floor_ppm)
    order = sorted(range(len(rows)), key=lambda place: rows[place].broker)
    least = floors(quota, len(rows), floor_ppm)
    floor = {place: least[rank] for rank, place in enumerate(order)}
    wants = [max(0, row.wanted.messages - floor[place]) for place, row in enumerate(rows)]
    has = [shares[place] - floor[place] for place in range(len(rows))]
    for poor in range(len(rows)):
        if has[poor] >= wants[poor]:
            continue
        # Somebody is short, so nothing is spare: nobody else has more for his weight,
        # but for the unit that a remainder may be.
        for rich in range(len(rows)):
            assert (has[rich] - 1) * rows[poor].weight <= (has[poor] + 1) * rows[rich].weight


@given(quota=QUOTAS, rows=rows_of(), floor_ppm=FLOORS_PPM)
def test_nothing_is_withheld_while_it_is_wanted(
    quota: int, rows: list[Row], floor_ppm: int
) -> None:
    """Law 4 in one step: if anybody is short, the others have no more than they want or their floor."""
    shares = shares_of(SharePolicyName.MAX_MIN, quota, rows, floor_ppm=floor_ppm)
    if all(share >= row.wanted.messages for share, row in zip(shares, rows, strict=True)):
        return
    most_floor = max(floors(quota, len(rows), floor_ppm))
    for share, row in zip(shares, rows, strict=True):
        assert share <= max(row.wanted.messages, most_floor)


@given(quota=QUOTAS, rows=rows_of(), floor_ppm=FLOORS_PPM)
def test_steal_wastes_nothing_and_cuts_to_the_quota(
    quota: int, rows: list[Row], floor_ppm: int
) -> None:
    """The PIP: the quota is not under-utilized; over it, what is used is reduced to it."""
    shares = shares_of(SharePolicyName.STEAL, quota, rows, floor_ppm=floor_ppm)
    used = [row.admitted.messages for row in rows]
    if sum(used) > quota:
        assert sum(shares) == quota
        return
    assert sum(shares) >= quota
    lifted = quota * floor_ppm // PPM + len(rows)
    for share, own in zip(shares, used, strict=True):
        assert share >= own - lifted


@given(policy=POLICIES, quota=QUOTAS, count=st.integers(1, 20))
def test_without_any_usage_the_quota_is_split_evenly(
    policy: SharePolicyName, quota: int, count: int
) -> None:
    rows = [Row(f"broker-{place:02}") for place in range(count)]
    shares = shares_of(policy, quota, rows, floor_ppm=10_000)
    assert sum(shares) == quota
    assert max(shares) - min(shares) <= 2


@given(
    policy=st.sampled_from(list(USAGE_POLICIES)),
    brokers=st.integers(1, 8),
    floor_ppm=FLOORS_PPM,
    data=st.data(),
)
def test_groups_together_have_the_shares_that_each_has_by_plain_arithmetic(
    policy: SharePolicyName, brokers: int, floor_ppm: int, data: st.DataObject
) -> None:
    small = st.integers(0, 200)
    usage = st.lists(RATES | small, min_size=brokers, max_size=brokers)
    groups = data.draw(st.lists(st.tuples(QUOTAS | small, usage), min_size=1, max_size=5))
    quota, used = (np.array(column, np.int64) for column in zip(*groups, strict=True))
    together = share_by_usage(policy, quota[:, None], used[..., None], floor_ppm)[..., 0]
    reference = getattr(pip82_reference, policy.value)
    assert together.tolist() == [reference(*group, floor_ppm) for group in groups]


@given(total=QUOTAS, weights=st.lists(st.integers(0, 10**14), min_size=1, max_size=10))
def test_apportioning_is_exact_and_no_part_is_a_whole_unit_off(
    total: int, weights: list[int]
) -> None:
    whole = sum(weights)
    parts = by_weight(np.array([total]), np.array([weights], np.int64))[0].tolist()
    assert sum(parts) == (total if whole else 0)
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part * whole - total * weight) < max(whole, 1)
    exact = by_weight(np.array([total], object), np.array([weights], object))[0].tolist()
    assert parts == exact


@given(
    policy=st.sampled_from(list(USAGE_POLICIES)), quota=QUOTAS, rows=rows_of(), floor_ppm=FLOORS_PPM
)
def test_pips_policies_share_each_dimension_by_itself(
    policy: SharePolicyName, quota: int, rows: list[Row], floor_ppm: int
) -> None:
    both = allocate(policy, Rates(quota, quota // 2), rows, floor_ppm=floor_ppm)
    only = [Row(row.broker, Pair(row.admitted.bytes)) for row in rows]
    messages = shares_of(policy, quota, rows, floor_ppm=floor_ppm)
    size = shares_of(policy, quota // 2, only, floor_ppm=floor_ppm)
    assert both == tuple(map(Rates, messages, size))


@given(policy=POLICIES, rows=rows_of())
def test_of_an_unlimited_quota_everybody_has_an_unlimited_share(
    policy: SharePolicyName, rows: list[Row]
) -> None:
    assert allocate(policy, Rates(), rows, floor_ppm=10_000) == (Rates(),) * len(rows)
