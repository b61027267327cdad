"""Tenants of groups, refusals by level, and steps of membership, from the log alone.

Law: nothing but the log is needed. Groups belong to the tenants and namespaces that the policies records of
the log attach to them, at any time of it. A tenant's figures are those of the group that is attached to
the tenant itself, because all of the tenant's work is charged to it; where there is none, the sum over the
groups of its namespaces. A group of several tenants is marked as shared, because the log has only
its total.

Both are gathered segment by segment and merged; logs of before (version 1) have neither.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from rgd.core.exchange.columns import KINDS, REFUSED_BY, Ints, UsageColumns
from rgd.core.exchange.messages import RoundRecord
from rgd.core.policies.names import tenant_of
from rgd.core.policies.records import NAMESPACE, TENANT
from rgd.wire.errors import WireError
from rgd.wire.log_policies import PolicyPart, policies_from

#: Attachments of one segment that are remembered; a daemon takes no more policies either.
ATTACHED_MAX: Final = 500_000
DIMENSIONS: Final = ("messages", "bytes")
#: Figures of groups that a tenant's are the sums of.
_SUMMED: Final = ("admitted", "wanted", "refused", "unmet")

#: By "tenant:..." or "namespace:...", the groups that it was attached to.
Attached = dict[str, list[str]]
#: By group and kind (`refused_key`), units refused by each of `REFUSED_BY`, messages before bytes.
Refused = dict[str, list[int]]


def note_policies(part: PolicyPart, attached: Attached) -> None:
    """Remember what a policies record attaches; what cannot be read is left out."""
    for text in part.texts:
        if not text[0].startswith((TENANT, NAMESPACE)) or len(attached) >= ATTACHED_MAX:
            continue
        try:
            ((key, group),) = policies_from([_one(part, text)])
        except WireError:
            continue
        if isinstance(group, str) and group not in attached.setdefault(key, []):
            attached[key].append(group)


class RefusedSums:
    """Sums what each level refused, by group and kind.

    Records mostly have the rows of the one before, so they are summed as arrays, and names are looked up where rows change.
    """

    def __init__(self) -> None:
        self._sums: Refused = {}
        self._usage: UsageColumns | None = None
        #: [rows, levels and dimensions] of `_usage`, not in `_sums` yet.
        self._block: Ints | None = None

    def note(self, record: RoundRecord) -> None:
        """Add a round."""
        rows = record.rows
        if not len(rows.refused_by):
            return
        levels = rows.refused_by.reshape(len(rows), -1)
        if self._block is None or self._usage is None or not rows.usage.has_rows_of(self._usage):
            self._add_block()
            self._usage, self._block = rows.usage, levels.copy()
        else:
            self._block += levels

    def taken(self) -> Refused:
        """All sums so far, of what refused anything."""
        self._add_block()
        return self._sums

    def _add_block(self) -> None:
        if self._block is None or self._usage is None:
            return
        for place in np.flatnonzero(self._block.any(axis=1)).tolist():
            kind = KINDS[self._usage.kinds[place]]
            key = refused_key(self._usage.groups[place], kind.value)
            levels = self._block[place].tolist()
            known = self._sums.setdefault(key, [0] * len(levels))
            known[:] = [a + b for a, b in zip(known, levels, strict=True)]
        self._block = None


def refused_key(group: str, kind: str) -> str:
    """A group and a kind as one key of JSON."""
    return f"{kind} {group}"


def merged_attached(parts: Iterable[Attached]) -> Attached:
    """What several segments attach."""
    merged: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for key, groups in part.items():
            merged[key].update(groups)
    return {key: sorted(groups) for key, groups in sorted(merged.items())}


def merged_refused(parts: Iterable[Refused]) -> Refused:
    """What was refused in several segments."""
    merged: Refused = {}
    for part in parts:
        for key, levels in part.items():
            known = merged.setdefault(key, [0] * len(levels))
            known[:] = [a + b for a, b in zip(known, levels, strict=True)]
    return merged


def refused_by(finding: Mapping[str, Any], refused: Refused) -> dict[str, int]:
    """Whole units that each level refused of a group, kind and dimension; without those of none."""
    levels = refused.get(refused_key(finding["group"], finding["kind"]), [])
    column = levels[DIMENSIONS.index(finding["dimension"]) :: len(DIMENSIONS)]
    return {level: count for level, count in zip(REFUSED_BY, column, strict=False) if count}


def note_membership(
    finding: Mapping[str, Any], changes: Iterable[tuple[str, int]], near_ms: float
) -> None:
    """Name `membership` as the cause of steps in the demand near which a broker of the group joined or left.

    Args:
        finding: of one group, kind and dimension; its steps are changed.
        changes: which broker joined or left when, ms since 1970.
        near_ms: how near is near: a step is at the first window that is wholly after it.
    """
    names = {one["broker"] for one in finding["brokers"]}
    moments = [at_ms for broker, at_ms in changes if broker in names]
    for step in finding["steps"]:
        is_near = any(abs(step["at_ms"] - at_ms) <= near_ms for at_ms in moments)
        if step["cause"] == "demand" and is_near:
            step["cause"] = "membership"


def groups_by_tenant(attached: Attached) -> dict[str, list[str]]:
    """The groups whose figures are a tenant's."""
    own = {
        key.removeprefix(TENANT): groups
        for key, groups in attached.items()
        if key.startswith(TENANT)
    }
    below: dict[str, set[str]] = defaultdict(set)
    for key, groups in attached.items():
        if key.startswith(NAMESPACE):
            below[tenant_of(key.removeprefix(NAMESPACE))].update(groups)
    return {tenant: own.get(tenant) or sorted(below[tenant]) for tenant in sorted({*own, *below})}


def by_tenant(findings: Sequence[Mapping[str, Any]], attached: Attached) -> list[dict[str, Any]]:
    """The value of "tenants" in `summary.json`: rates of each tenant, kind and dimension."""
    groups_of = groups_by_tenant(attached)
    tenants_of: dict[str, set[str]] = defaultdict(set)
    for tenant, groups in groups_of.items():
        for group in groups:
            tenants_of[group].add(tenant)
    by_group: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for finding in findings:
        by_group[finding["group"]].append(finding)
    return [
        row
        for tenant, groups in groups_of.items()
        for row in _of_tenant(tenant, groups, by_group, tenants_of)
    ]


def _of_tenant(
    tenant: str,
    groups: Sequence[str],
    by_group: Mapping[str, Sequence[Mapping[str, Any]]],
    tenants_of: Mapping[str, set[str]],
) -> Iterable[dict[str, Any]]:
    found = [finding for group in groups for finding in by_group.get(group, ())]
    for kind, dimension in dict.fromkeys((one["kind"], one["dimension"]) for one in found):
        mine = [one for one in found if (one["kind"], one["dimension"]) == (kind, dimension)]
        yield {
            "tenant": tenant,
            "kind": kind,
            "dimension": dimension,
            "groups": sorted(one["group"] for one in mine),
            "shared_with": sorted(
                set().union(*(tenants_of[one["group"]] for one in mine)) - {tenant}
            ),
            **{name: sum(one[name] or 0.0 for one in mine) for name in _SUMMED},
        }


def _one(part: PolicyPart, text: tuple[str, str]) -> PolicyPart:
    return PolicyPart(part.sender, part.policies_hash, (text,))
