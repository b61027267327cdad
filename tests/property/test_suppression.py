"""Change suppression: what the peers believe of this broker is never far off.

A mirror takes in what is told; after every round it is compared with the truth by its own
measures, and by the hash. Not covered: each rule by itself (tests/unit/core/exchange).
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import OwnRates, Suppression
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.shares.columns import Rows, share_out
from rgd.core.units import Kind, Pair
from tests.unit.core.values import advertised

QUOTA = 100_000
TOLERANCE_PPM = 100_000
FULL_EVERY = 4
GROUPS = ("gold", "silver", "trial")

rates = st.integers(0, 300) | st.integers(0, 2 * QUOTA)
rounds = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(GROUPS), st.tuples(rates, rates), max_size=3),
        # How the round is cut into slices, and whether something of it was told early.
        st.integers(1, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=15,
)


def row_of(group: str, wanted: int, admitted: int) -> UsageRow:
    both = Pair(min(admitted, wanted)), Pair(wanted)
    return UsageRow(group, Kind.PUBLISH, 1, *both)


def shares(wanted: Ints) -> Ints:
    """[rows, 3] ours and those of two others that want 30 % and 60 % of the quota."""
    count = len(wanted)
    others = np.array([[30_000, 0], [60_000, 0]])
    rows = Rows(
        group=np.repeat(np.arange(count), 3),
        broker_index=np.tile(np.arange(3), count),
        wanted=np.concatenate([[own, *others] for own in wanted]),
        weight=np.full(3 * count, 1000),
    )
    quota = np.full((count, 2), [QUOTA, -1])
    shared = share_out(rows, quota, brokers=3, floor_ppm=10_000)
    return shared.of_rows[:, 0].reshape(count, 3)


def moves(places: Ints, before: OwnRates, after: OwnRates) -> Flags:
    del places
    was, will_be = shares(before.wanted), shares(after.wanted)
    moved: Flags = (np.abs(will_be - was) * 100 > was).any(axis=1)
    return moved


def quotas(places: Ints) -> Ints:
    return np.full((len(places), 2), [QUOTA, -1])


def tell(
    suppression: Suppression, index: GroupIndex, rows: Sequence[UsageRow], *, anyway: bool
) -> UsageColumns:
    """What is picked of these rows."""
    columns = UsageColumns.of(*rows)
    places = index.slots(columns.groups, columns.kinds)
    return columns.take(suppression.pick(places, columns, anyway=anyway))


@pytest.mark.slow
@given(rounds)
def test_what_is_believed_is_never_further_off_than_the_rules_allow(
    script: list[tuple[dict[str, tuple[int, int]], int, bool]],
) -> None:
    index = GroupIndex()
    suppression = Suppression(
        index, quotas, moves, tolerance_ppm=TOLERANCE_PPM, full_every=FULL_EVERY
    )
    mirror, last_told = UsageMap(), dict[GroupKey, int]()
    for number, (wants, slices, is_early) in enumerate(script):
        truth = {
            GroupKey(group, Kind.PUBLISH): row_of(group, *rate) for group, rate in wants.items()
        }
        rows = list(truth.values())
        told = []
        if is_early:
            told.append(tell(suppression, index, rows[:1], anyway=False))
            mirror.apply(Report(Sender("me", 1), number, 1, told[0]))
        suppression.next_round()
        picked = [
            tell(suppression, index, rows[at : at + slices], anyway=True)
            for at in range(0, len(rows), slices)
        ]
        keys = [index.keys[place] for place in suppression.advertised_slots().tolist()]
        gone = [key for key in keys if key not in truth]
        places = np.array([index.slot(key) for key in gone], np.int64)
        suppression.forget(places)
        picked.append(suppression.advertised_at(places))
        report = UsageColumns.join(picked)
        mirror.apply(Report(Sender("me", 1), number, 1, report))
        last_told |= {
            GroupKey(row.group, row.kind): number for one in (*told, report) for row in one
        }
        believed = mirror.rows_of("me")
        assert believed == {GroupKey(row.group, row.kind): row for row in advertised(suppression)}
        assert mirror.hash_of("me") == suppression.hash_of()
        # A zero is never believed to be more, nor more to be a zero.
        assert set(believed) == {key for key, row in truth.items() if not row.is_idle}
        for key, held in believed.items():
            assert number - last_told[key] < FULL_EVERY
            for was, now in zip(
                (*held.wanted, *held.admitted),
                (*truth[key].wanted, *truth[key].admitted),
                strict=True,
            ):
                assert abs(now - was) * 10 <= was
                assert abs(now - was) * 200 <= QUOTA
            was_shares, now_shares = shares(np.array([held.wanted, truth[key].wanted])).tolist()
            for was, now in zip(was_shares, now_shares, strict=True):
                assert abs(now - was) * 100 <= was
