"""The groups file as a policy snapshot: what each line of it becomes.

Mistakes are in test_bad_config, the snapshot's hash in test_policies_hash; how a snapshot decides requests is the
core's tests' business.
"""

from pathlib import Path

import pytest

from rgd.config.groups import load_groups
from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas, Group, Limit
from rgd.core.units import QUOTA_MAX
from tests.support.cases import cases
from tests.unit.config.groups_file import EVERYTHING, SNAPSHOT, TOPIC, load


def test_the_whole_shape_becomes_a_snapshot(tmp_path: Path) -> None:
    assert load(tmp_path, EVERYTHING) == SNAPSHOT


@pytest.mark.parametrize("rate", ["0", "-1", "-5.5", "1e16", str(QUOTA_MAX + 1), "1" + "0" * 90])
def test_zero_less_and_beyond_the_largest_quota_are_unlimited(tmp_path: Path, rate: str) -> None:
    snapshot = load(tmp_path, f"groups: {{gold: {{publish: {{messages: {rate}}}}}}}")
    assert snapshot.groups["gold"].quota == Limit()


def test_the_smallest_rate_is_not_unlimited(tmp_path: Path) -> None:
    snapshot = load(tmp_path, "groups: {gold: {publish: {messages: 0.0000001}}}")
    assert snapshot.groups["gold"].quota.publish.messages == 1


def test_a_group_without_limits_is_unlimited(tmp_path: Path) -> None:
    snapshot = load(tmp_path, "groups: {gold: {}, silver: {publish: {}}}")
    assert snapshot.groups == {"gold": Group("gold"), "silver": Group("silver")}


@cases(
    "said, quotas",
    {
        "nothing": ("{}", BacklogQuotas()),
        "no-limit": ("{size: {}}", BacklogQuotas(size=BacklogQuota())),
        "zero-and-less-are-unlimited": (
            "{size: {limit_bytes: 0}, age: {limit_s: -5}}",
            BacklogQuotas(BacklogQuota(), BacklogQuota()),
        ),
        "size": (
            "{size: {limit_bytes: 1e9, action: producer_exception}}",
            BacklogQuotas(BacklogQuota(1_000_000_000, -1, BacklogAction.REFUSE)),
        ),
        "hold-by-default": ("{age: {limit_s: 60}}", BacklogQuotas(age=BacklogQuota(age_s=60))),
        "beyond-what-pulsar-can-say-is-unlimited": (
            "{size: {limit_bytes: 9223372036854775808}, age: {limit_s: 2147483648}}",
            BacklogQuotas(BacklogQuota(), BacklogQuota()),
        ),
        "the-most-that-pulsar-can-say": (
            "{size: {limit_bytes: 9223372036854775807}, age: {limit_s: 2147483647}}",
            BacklogQuotas(BacklogQuota((1 << 63) - 1), BacklogQuota(age_s=(1 << 31) - 1)),
        ),
    },
)
def test_backlog_quotas_are_in_whole_bytes_and_seconds(
    tmp_path: Path, said: str, quotas: BacklogQuotas
) -> None:
    snapshot = load(tmp_path, f'backlog_quotas: {{topics: {{"{TOPIC}": {said}}}}}')
    assert snapshot.backlogs.topics == {TOPIC: quotas}


# Each takes a second on two cores; the room is for a busy machine.
@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_hundred_thousand_namespaces_load_in_seconds(tmp_path: Path) -> None:
    groups = "".join(f"  g{number}: {{publish: {{messages: 10}}}}\n" for number in range(1000))
    namespaces = "".join(
        f"    t{number % 997}/n{number}: g{number % 1000}\n" for number in range(100_000)
    )
    snapshot = load(tmp_path, f"groups:\n{groups}attach:\n  namespaces:\n{namespaces}")
    assert len(snapshot.attach.namespaces) == 100_000


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_wrong_groups_by_the_thousand_are_reported_in_seconds(tmp_path: Path) -> None:
    groups = "".join(f"  group-{number}: {{}}\n" for number in range(900))
    wrong = "".join(f"    tenant-{number}: grop-{number}x\n" for number in range(5000))
    path = tmp_path / "groups.yaml"
    path.write_text(f"groups:\n{groups}attach:\n  tenants:\n{wrong}")
    with pytest.raises(Exception, match="and 4000 more faults"):
        load_groups(path)
