"""The tenants of groups, from the log alone.

Law: groups belong to the tenants and namespaces that the policies records of
the log attach to them, at any time of it. A tenant's figures are those of the group that is attached to
the tenant itself, because all of the tenant's work is charged to it; where there is none, the sum over the
groups of its namespaces. A group of several tenants is marked as shared, because the log has only
its total.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from rgd.analysis.errors import NothingLogged
from rgd.core.policies.names import tenant_of
from rgd.core.policies.records import NAMESPACE, TENANT
from rgd.wire.log_policies import PolicyPart

#: No further record of a segment is looked into for attachments; a daemon takes no more policies either.
ATTACHED_MAX: Final = 500_000
#: Policies records whose attachments a worker remembers; one has up to a MiB of text.
PARTS_KEPT: Final = 8
#: Tenants that an error names.
TENANTS_NAMED_MAX: Final = 5
#: Rates of groups that a tenant's are the sums of.
_RATES: Final = ("admitted", "wanted", "refused", "unmet")

#: By "tenant:..." the groups that the tenant was attached to, by "namespace:..." those of its namespaces.
Attached = Mapping[str, list[str]]
NOTHING_ATTACHED: Final[Attached] = MappingProxyType({})


def note_policies(part: PolicyPart, attached: set[tuple[str, str]]) -> None:
    """Remember what a policies record attaches to groups; what cannot be read is left out."""
    if len(attached) < ATTACHED_MAX:
        attached.update(_attached(part.texts))


@lru_cache(maxsize=PARTS_KEPT)
def _attached(texts: tuple[tuple[str, str], ...]) -> set[tuple[str, str]]:
    """What policies attach: groups, each with a tenant, or the tenant of a namespace. Every segment repeats most."""
    found = set()
    for key, text in texts:
        with suppress(ValueError, RecursionError):
            group = json.loads(text) if key.startswith((TENANT, NAMESPACE)) else None
            if isinstance(group, str):
                is_tenant = key.startswith(TENANT)
                of = key if is_tenant else NAMESPACE + tenant_of(key.removeprefix(NAMESPACE))
                found.add((group, of))
    return found


def merged_attached(pairs: Iterable[tuple[str, str]]) -> Attached:
    """From pairs of a group and what it is attached to."""
    merged: dict[str, set[str]] = defaultdict(set)
    for group, key in pairs:
        merged[key].add(group)
    return {key: sorted(groups) for key, groups in sorted(merged.items())}


def groups_by_tenant(attached: Attached) -> dict[str, list[str]]:
    """The groups whose figures are a tenant's."""
    own, below = (
        {key.removeprefix(sort): groups for key, groups in attached.items() if key.startswith(sort)}
        for sort in (TENANT, NAMESPACE)
    )
    return {tenant: own.get(tenant) or sorted(below[tenant]) for tenant in sorted({*own, *below})}


def groups_of(tenants: frozenset[str], attached: Attached) -> list[str] | None:
    """The groups whose figures are one of these tenants'; None if no tenant is named.

    Raises:
        NothingLogged: the log knows none of a tenant.
    """
    if not tenants:
        return None
    known = groups_by_tenant(attached)
    strange = sorted(tenants - known.keys())
    if strange:
        nearest = get_close_matches(strange[0], known, TENANTS_NAMED_MAX) or sorted(known)
        some = ", ".join(nearest[:TENANTS_NAMED_MAX]) or "none"
        raise NothingLogged(
            f"the logs attach no group to tenant {strange[0]!r}; of {len(known)} tenants the nearest are: {some}"
        )
    return sorted({group for tenant in tenants for group in known[tenant]})


def by_tenant(
    findings: Sequence[Mapping[str, Any]],
    attached: Attached,
    only: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """The value of "tenants" in `summary.json`: rates of each tenant (or `only` some), kind and dimension."""
    known = groups_by_tenant(attached)
    tenants_of: dict[str, set[str]] = defaultdict(set)
    for tenant, groups in known.items():
        for group in groups:
            tenants_of[group].add(tenant)
    by_group: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for finding in findings:
        by_group[finding["group"]].append(finding)
    return [
        row
        for tenant, groups in known.items()
        if not only or tenant in only
        for row in _of_tenant(tenant, groups, by_group, tenants_of)
    ]


def rate_of(findings: Sequence[Mapping[str, Any]], name: str) -> float:
    """A rate of groups together over the time of the one that was used longest, as each rate is a mean over its own time."""
    amount: float = sum(one["seconds"] * (one[name] or 0.0) for one in findings)
    longest: float = max(one["seconds"] for one in findings)
    return round(amount / longest, 6)


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
            **{name: rate_of(mine, name) for name in _RATES},
            "starved_s": sum(one["starved_s"] or 0.0 for one in mine),
            "refused_by": dict(sum((Counter(one["refused_by"]) for one in mine), Counter())),
        }
