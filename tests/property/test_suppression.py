"""Change suppression: what the peers believe of this broker is never far off.

A mirror takes in what is told; after every round it is compared with the truth by design 3's own
measures, and by the hash. Not covered: each rule by itself (tests/unit/core/exchange).
"""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import Report, Speaker, UsageRow
from rgd.core.exchange.suppression import Suppression, SuppressionSettings
from rgd.core.exchange.usage_map import UsageMap, told_hash
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import Kind, Pair

QUOTA = 100_000
TOLERANCE_PPM = 100_000
FULL_EVERY = 4
GROUPS = ("gold", "silver", "trial")

rates = st.integers(0, 300) | st.integers(0, 2 * QUOTA)
rounds = st.lists(
    st.dictionaries(st.sampled_from(GROUPS), st.tuples(rates, rates), max_size=3),
    min_size=1,
    max_size=15,
)


def row_of(group: str, wanted: int, admitted: int) -> UsageRow:
    both = Pair(min(admitted, wanted)), Pair(wanted)
    return UsageRow(group, Kind.PUBLISH, 1, *both, Pair(), Pair())


def shares(group: GroupKey, row: UsageRow) -> tuple[int, ...]:
    """Ours and those of two others that want 30 % and 60 % of the quota."""
    del group
    rows = [
        Row("me", row.admitted.messages, row.wanted.messages),
        Row("x", wanted=30_000),
        Row("y", wanted=60_000),
    ]
    return allocate(SharePolicyName.MAX_MIN, QUOTA, rows, floor_ppm=10_000)


@given(rounds)
def test_what_is_believed_is_never_further_off_than_the_rules_allow(
    script: list[dict[str, tuple[int, int]]],
) -> None:
    suppression = Suppression(
        SuppressionSettings(TOLERANCE_PPM, FULL_EVERY), lambda group: Rates(QUOTA), shares
    )
    mirror, last_told = UsageMap(), dict[GroupKey, int]()
    for number, wants in enumerate(script):
        truth = {
            GroupKey(group, Kind.PUBLISH): row_of(group, *rate) for group, rate in wants.items()
        }
        told = suppression.pick(truth)
        last_told |= {GroupKey(row.group, row.kind): number for row in told}
        mirror.apply(Report(Speaker("me", 1), number, 1, tuple(told)))
        believed = mirror.rows_of("me")
        assert believed == suppression.told
        assert told_hash(believed.values()) == told_hash(suppression.told.values())
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
            for was, now in zip(shares(key, held), shares(key, truth[key]), strict=True):
                assert abs(now - was) * 100 <= was
