"""Policy records: what a snapshot they make, and keys that name one thing.

Not covered: which record of a key counts (tests/unit/app/test_policies_table.py), any records
(tests/property/test_policy_records.py), their bytes (tests/unit/wire/test_policies.py).
"""

from rgd.core.policies.model import (
    Attachments,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Group,
    Limit,
    Limits,
    LocalLimit,
)
from rgd.core.policies.records import PolicyRecord, PolicyRecords, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.values import NAMESPACE, TOPIC, rates

LIMIT = LocalLimit(publish=rates(5))
QUOTAS = BacklogQuotas(BacklogQuota(1000))
SNAPSHOT = PolicySnapshot(
    {"gold": Group("gold", Limit(publish=rates(5)))},
    Attachments({"acme": "gold"}, {NAMESPACE: "gold"}, {TOPIC: "gold"}),
    Limits(
        LIMIT,
        {TOPIC: LIMIT},
        {(TOPIC, "s"): LIMIT},
        {NAMESPACE: LIMIT},
        {NAMESPACE: LIMIT},
        {TOPIC: LIMIT},
    ),
    backlogs=Backlogs({NAMESPACE: QUOTAS}, {TOPIC: QUOTAS}),
)


def table(*known: PolicyRecord) -> PolicyRecords:
    records = PolicyRecords()
    for one in known:
        records.put(one)
    return records


def test_a_snapshot_comes_back_from_its_records() -> None:
    records = records_of(SNAPSHOT, "b1")
    assert {(one.revision, one.writer) for one in records} == {(1, "b1")}
    assert table(*records).snapshot() == SNAPSHOT
