"""Whose a group is and which level refused, from nothing but a log.

Not covered: figures of groups (test_findings), a whole report (tests/integration/spark).
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from rgd.analysis.discovery import Segment
from rgd.analysis.evaluation import Evaluator
from rgd.analysis.log_facts import Stats
from rgd.analysis.reading import segment_pieces
from rgd.analysis.tenants import by_tenant, groups_by_tenant, merged_attached
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import Attachments, Group, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Pair
from sim.usage_log import SegmentWriter
from tests.support.columns import shares_of

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
    usage = UsageRow("gold", Kind.PUBLISH, 1, Pair(9, 9), Pair(9, 9))
    row = ShareRow(
        usage,
        (None, None),
        (None, None),
        SharePolicyName.MAX_MIN,
        Pair(sum(refused.values())),
        refused_by=tuple((level, Pair(count, 2 * count)) for level, count in refused.items()),
        admitted_total=Pair(9 * sequence, 9 * sequence),
        wanted_total=Pair(9 * sequence, 9 * sequence),
    )
    return RoundRecord(Sender("b1", 1), sequence, 1_000_000_000, shares_of(row))


def pieces_of(folder: Path) -> tuple[pa.Table, list[Stats]]:
    """As they come to the executor that judges: some at a time."""
    made = [
        batch
        for segment in sorted(folder.glob("*.log"))
        for batch in segment_pieces(Segment.of(segment), 1000, round_ms=1000.0, rows_max=3)
    ]
    batches = [one for one in made if not isinstance(one, Stats)]
    return pa.Table.from_batches(batches), [one for one in made if isinstance(one, Stats)]


def test_a_log_alone_says_whose_a_group_is_and_which_level_refused(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "b1", segment_bytes=700)
    writer.append(PoliciesInForce(Sender("b1", 1), SNAPSHOT, 7), T0)
    for sequence in range(1, 21):
        writer.append(round_of(sequence, broker=1, resource_group=3), T0 + 1000 * sequence)
    moved = PolicySnapshot(GROUPS, Attachments(tenants={"acme": "tin"}))
    writer.append(PoliciesInForce(Sender("b1", 1), moved, 8), T0 + 21_000)
    writer.close()
    segments = len(list(tmp_path.glob("*.log")))
    assert segments > 1
    pieces, stats = pieces_of(tmp_path)
    # Each of them says it, so that others may be deleted.
    assert sum(("all", "tenant:big") in one.contents.attached for one in stats) >= segments - 1
    attached = merged_attached(pair for one in stats for pair in one.contents.attached)
    assert attached["tenant:acme"] == ["gold", "tin"]
    assert attached["namespace:small"] == ["silver", "tin"]
    _, found = Evaluator(1000, 1000.0).of_pieces(pieces)
    assert {one["dimension"]: one["refused_by"] for one in found} == {
        "messages": {"broker": 20, "resource_group": 60},
        "bytes": {"broker": 40, "resource_group": 120},
    }
    assert len(stats) == segments
    assert not any(one.contents.foreign or one.contents.groups for one in stats)


def test_a_tenants_figures_are_its_groups_or_those_of_its_namespaces() -> None:
    attached = {
        "tenant:acme": ["gold"],
        "tenant:big": ["all"],
        "tenant:huge": ["all"],
        "namespace:acme": ["silver"],
        "namespace:small": ["silver", "tin"],
    }
    # What acme's namespace uses is charged to acme's own group too.
    groups = {"acme": ["gold"], "big": ["all"], "huge": ["all"], "small": ["silver", "tin"]}
    assert groups_by_tenant(attached) == groups
    seconds = {"all": 60.0, "gold": 60.0, "silver": 60.0, "tin": 15.0}
    figures = {"admitted": 1.0, "wanted": 2.0, "refused": 1.0, "unmet": 1.0, "starved_s": 3.0}
    counted: dict[str, Any] = {**figures, "refused_by": {"topic": 5}}
    findings = [
        {"group": group, "kind": "publish", "dimension": "messages", "seconds": its} | counted
        for group, its in seconds.items()
    ]
    rows = {row["tenant"]: row for row in by_tenant(findings, attached)}
    assert rows["small"]["groups"] == ["silver", "tin"]
    assert (rows["small"]["starved_s"], rows["small"]["refused_by"]) == (6.0, {"topic": 10})
    # A quarter of the time at the same rates.
    assert (rows["small"]["admitted"], rows["small"]["wanted"]) == (1.25, 2.5)
    assert rows["acme"]["wanted"] == 2.0
    assert rows["big"]["shared_with"] == ["huge"]
    assert rows["small"]["shared_with"] == []
