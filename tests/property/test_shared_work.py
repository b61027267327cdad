"""What the simulator computes once for all daemons is what each would compute.

Not covered: the shares themselves (test_shares_columns.py).
"""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.broker.broker_index import own_shares
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from sim.cluster import Cluster
from sim.member import CoreBrain
from sim.policies import maker_of
from sim.scenarios import SCENARIOS
from sim.shared_work import SharedWork
from tests.property.test_shares_columns import Case, cases

#: Numbers that two calls often have in common.
FEW = st.integers(0, 3)
CASES = st.lists(
    cases(st.tuples(FEW | st.just(NO_RATE), FEW | st.just(NO_RATE)), groups_max=3),
    min_size=1,
    max_size=5,
)


def _assert_divided_alike(shared: SharedWork, case: Case) -> None:
    rows = case.rows()
    quota = np.array(case.quotas, np.int64)
    for own in {0, case.brokers - 1}:
        alone = own_shares(rows, quota, brokers=case.brokers, floor_ppm=case.floor_ppm, own=own)
        once = shared.divide(rows, quota, brokers=case.brokers, floor_ppm=case.floor_ppm, own=own)
        assert once.tolist() == alone.tolist()
        # What a caller does with its shares is its own affair.
        once[:] = -7


@settings(max_examples=25)
@given(asked=CASES)
def test_shares_that_are_remembered_are_those_that_each_computes(asked: list[Case]) -> None:
    shared = SharedWork()
    for case in [*asked, *asked]:
        # A group alone, then in company: a part is remembered.
        first = Case(case.quotas[:1], case.wants[:1], case.brokers, case.floor_ppm)
        _assert_divided_alike(shared, first)
        _assert_divided_alike(shared, case)


@settings(max_examples=25)
@given(asked=CASES)
def test_a_full_memory_changes_nothing(asked: list[Case]) -> None:
    shared = SharedWork(groups_max=3)
    for case in [*asked, *asked]:
        _assert_divided_alike(shared, case)


def test_a_run_is_the_same_with_and_without() -> None:
    scenario = replace(
        SCENARIOS["lossy"], daemons=4, groups=4, rounds=3, asks_per_s=12.0, bytes_per_daemon=2e5
    )
    runs = []
    for maker in (CoreBrain, maker_of(SharePolicyName.MAX_MIN)):
        recording = Cluster(scenario, seed=3, make_brain=maker).run()
        runs.append([each.tobytes() for each in (recording.shares, recording.tokens)])
    assert runs[0] == runs[1]
