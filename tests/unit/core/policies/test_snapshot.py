"""The policy snapshot: which groups charge a name, and what is attached where.

Not covered: where snapshots come from, and the buckets (tests/unit/core/buckets).
"""

import pytest

from rgd.core.policies.model import Attachments, Group, Limits, LocalLimit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.values import NAMESPACE, TOPIC

SNAPSHOT = PolicySnapshot(
    {name: Group(name) for name in ("tenant", "namespace", "topic")},
    Attachments(
        {"acme": "tenant", "other": "gone"},
        {NAMESPACE: "namespace", "acme/plain": "gone"},
        {TOPIC: "topic", "persistent://acme/orders/twice": "namespace"},
    ),
)


@pytest.mark.parametrize(
    ("namespace", "topic", "groups"),
    [
        pytest.param(NAMESPACE, TOPIC, ["topic", "namespace", "tenant"], id="narrowest-first"),
        pytest.param(NAMESPACE, None, ["namespace", "tenant"], id="no-topic"),
        pytest.param(
            NAMESPACE, "persistent://acme/orders/twice", ["namespace", "tenant"], id="each-once"
        ),
        pytest.param("acme/plain", None, ["tenant"], id="a-group-that-does-not-exist-yet"),
        pytest.param("other/x", "persistent://other/x/y", [], id="nothing"),
        pytest.param(None, TOPIC, ["topic"], id="no-namespace"),
    ],
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
        named=frozenset({"a/once"}),
    )
    assert snapshot.namespaces() == {"a/attached", "a/topic", "a/limited", "a/subscribed", "a/once"}
