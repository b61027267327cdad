"""Whose a group is and which level refused, from nothing but a log.

Not covered: figures of groups (test_findings), a whole report (tests/integration/spark).
"""

from pathlib import Path

from rgd.analysis.explained import (
    by_tenant,
    groups_by_tenant,
    merged_attached,
    merged_refused,
    refused_by,
)
from rgd.analysis.log_facts import Stats
from rgd.analysis.segments import Contents, read_segment
from rgd.core.exchange.columns import ShareColumns
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import Attachments, Group, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Pair
from sim.usage_log import SegmentWriter

T0 = 1_795_234_300_000
GROUPS = {name: Group(name) for name in ("gold", "silver", "tin", "all")}
SNAPSHOT = PolicySnapshot(
    GROUPS,
    Attachments(
        tenants={"acme": "gold", "big": "all", "huge": "all"},
        namespaces={"acme/orders": "silver", "small/one": "tin", "small/two": "silver"},
    ),
)


def round_of(sequence: int, **refused: int) -> RoundRecord:
    usage = UsageRow("gold", Kind.PUBLISH, 1, Pair(9), Pair(9))
    row = ShareRow(
        usage,
        (None, None),
        (None, None),
        SharePolicyName.MAX_MIN,
        Pair(sum(refused.values())),
        refused_by=tuple((level, Pair(count, 2 * count)) for level, count in refused.items()),
        admitted_total=Pair(9 * sequence),
        wanted_total=Pair(9 * sequence),
    )
    return RoundRecord(Sender("b1", 1), sequence, 1_000_000_000, ShareColumns.of(row))


def contents_of(folder: Path) -> list[Contents]:
    found = []
    for segment in sorted(folder.glob("*.log")):
        contents = Contents(str(segment))
        assert all(True for _ in read_segment(segment, contents))
        # As it travels from the executors to the driver.
        found.append(Stats.from_json(Stats(contents, []).to_json()).contents)
    return found


def test_a_log_alone_says_whose_a_group_is_and_which_level_refused(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "b1", segment_bytes=700)
    writer.append(PoliciesInForce(Sender("b1", 1), SNAPSHOT, 7), T0)
    for sequence in range(1, 21):
        writer.append(round_of(sequence, broker=1, resource_group=3), T0 + sequence)
    moved = PolicySnapshot(GROUPS, Attachments(tenants={"acme": "tin"}))
    writer.append(PoliciesInForce(Sender("b1", 1), moved, 8), T0 + 21)
    writer.close()
    contents = contents_of(tmp_path)
    assert len(contents) > 1
    # Each of them says it, so that others may be deleted.
    assert all(one.attached.items() >= {"tenant:big": ["all"]}.items() for one in contents)
    attached = merged_attached(one.attached for one in contents)
    assert attached["tenant:acme"] == ["gold", "tin"]
    refused = merged_refused(one.refused_by for one in contents)
    finding = {"group": "gold", "kind": "publish", "dimension": "bytes"}
    assert refused_by(finding, refused) == {"broker": 40, "resource_group": 120}
    assert refused_by(finding | {"kind": "dispatch"}, refused) == {}
    assert sum(one.foreign for one in contents) == 0


def test_a_tenants_figures_are_its_groups_or_those_of_its_namespaces() -> None:
    attached = {
        "tenant:acme": ["gold"],
        "tenant:big": ["all"],
        "tenant:huge": ["all"],
        "namespace:acme/orders": ["silver"],
        "namespace:small/one": ["tin"],
        "namespace:small/two": ["silver"],
    }
    # What acme's namespace uses is charged to acme's own group too.
    assert groups_by_tenant(attached) == {
        "acme": ["gold"],
        "big": ["all"],
        "huge": ["all"],
        "small": ["silver", "tin"],
    }
    figures = {"admitted": 1.0, "wanted": 2.0, "refused": 1.0, "unmet": 1.0}
    findings = [
        {"group": group, "kind": "publish", "dimension": "messages"} | figures
        for group in ("all", "gold", "silver", "tin")
    ]
    rows = {row["tenant"]: row for row in by_tenant(findings, attached)}
    assert rows["small"]["groups"] == ["silver", "tin"]
    assert rows["small"]["wanted"] == 4.0
    assert rows["acme"]["wanted"] == 2.0
    assert rows["big"]["shared_with"] == ["huge"]
    assert rows["small"]["shared_with"] == []
