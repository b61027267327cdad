"""The policy snapshot: which groups charge a name, and what is attached where.

Not covered: where snapshots come from, and the buckets (tests/unit/core/buckets).
"""

from rgd.core.policies.model import Attachments, Group, Limits, LocalLimit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.cases import cases
from tests.unit.core.values import NAMESPACE, TOPIC

SNAPSHOT = PolicySnapshot(
    {name: Group(name) for name in ("tenant", "namespace", "topic")},
    Attachments(
        {"acme": "tenant", "other": "gone"},
        {NAMESPACE: "namespace", "acme/plain": "gone"},
        {TOPIC: "topic", "persistent://acme/orders/twice": "namespace"},
    ),
)


@cases(
    "namespace, topic, groups",
    {
        "narrowest-first": (NAMESPACE, TOPIC, ["topic", "namespace", "tenant"]),
        "no-topic": (NAMESPACE, None, ["namespace", "tenant"]),
        "each-once": (NAMESPACE, "persistent://acme/orders/twice", ["namespace", "tenant"]),
        "a-group-that-does-not-exist-yet": ("acme/plain", None, ["tenant"]),
        "nothing": ("other/x", "persistent://other/x/y", []),
        "no-namespace": (None, TOPIC, ["topic"]),
    },
)
def test_each_distinct_group_charges(
    namespace: str | None, topic: str | None, groups: list[str]
) -> None:
    assert [group.name for group in SNAPSHOT.groups_of(namespace, topic)] == groups


def test_a_namespace_exists_once_named_anywhere() -> None:
    snapshot = PolicySnapshot(
        attach=Attachments(namespaces={"a/attached": "g"}, topics={"persistent://a/topic/t": "g"}),
        limits=Limits(
            topics={"persistent://a/limited/t": LocalLimit()},
            subscriptions={("persistent://a/subscribed/t", "s"): LocalLimit()},
        ),
    )
    assert snapshot.existing == {"a", "a/attached", "a/topic", "a/limited", "a/subscribed"}
