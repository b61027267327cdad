"""Policy records: what a snapshot they make, and keys that name one thing.

Not covered: which record of a key counts (tests/unit/app/test_policies_table.py), any records
(tests/property/test_policy_records.py), their bytes (tests/unit/wire/test_policies.py).
"""

from rgd.core.policies.model import (
    NOT_SET,
    Attachments,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Group,
    Limit,
    Limits,
    LocalLimit,
)
from rgd.core.policies.records import (
    PolicyRecord,
    PolicyRecords,
    Value,
    records_of,
    subscription_name,
    subscription_of,
)
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


def record(revision: int, writer: str = "b1", value: Value = "gold") -> PolicyRecord:
    return PolicyRecord("tenant:acme", revision, writer, value)


def table(*known: PolicyRecord) -> PolicyRecords:
    records = PolicyRecords()
    for one in known:
        records.put(one)
    return records


def test_the_next_record_replaces_what_is_known() -> None:
    records = table(record(7, "b9"))
    assert records.next("tenant:acme", None, "b1") == record(8, "b1", None)
    assert records.next("tenant:new", "gold", "b1").revision == 1
    # It was only made, not applied.
    assert records.snapshot().attach.tenants == {"acme": "gold"}


def test_a_deleted_value_stays_known() -> None:
    records = table(record(1), record(2, value=None))
    assert "tenant:acme" in records
    assert "tenant:other" not in records
    assert records.snapshot().attach.tenants == {}


def test_a_snapshot_comes_back_from_its_records() -> None:
    records = records_of(SNAPSHOT, "b1")
    assert {(one.revision, one.writer) for one in records} == {(1, "b1")}
    assert table(*records).snapshot() == SNAPSHOT


def test_a_snapshot_without_limits_has_no_limit_record() -> None:
    assert records_of(PolicySnapshot(), "b1") == []
    assert table().snapshot() == PolicySnapshot(limits=Limits(NOT_SET))


def test_everything_deleted_leaves_only_the_names_of_namespaces() -> None:
    records = table(*records_of(SNAPSHOT, "b1"))
    for one in records_of(SNAPSHOT, "b1"):
        records.put(PolicyRecord(one.key, 2, "b1", None))
    snapshot = records.snapshot()
    assert snapshot == PolicySnapshot()
    assert snapshot.namespaces() == {NAMESPACE}


def test_the_key_of_a_subscription_is_readable_and_says_where_the_topic_ends() -> None:
    assert subscription_name(TOPIC, "my sub") == f"{TOPIC}|my sub"
    assert subscription_name(f"{TOPIC}|a%7C", "b|c%") == f"{TOPIC}%7Ca%257C|b|c%"
    assert subscription_of(f"{TOPIC}%7Ca%257C|b|c%") == (f"{TOPIC}|a%7C", "b|c%")


def test_limits_of_topics_with_a_bar_in_their_name_are_kept_apart() -> None:
    subscriptions = {
        (f"{TOPIC}|a", "b"): LIMIT,
        (TOPIC, "a|b"): LocalLimit(publish=rates(6)),
        (f"{TOPIC}%7Ca", "b"): LocalLimit(publish=rates(7)),
    }
    snapshot = PolicySnapshot(limits=Limits(subscriptions=subscriptions))
    assert table(*records_of(snapshot, "b1")).snapshot() == snapshot
