"""What the limiter tells of who asked: the names since the snapshot came into force.

Not covered: what becomes of them (tests/unit/app/test_policies_stock_topics.py).
"""

from rgd.core.buckets.decision import Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Rates, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos

EU = "persistent://acme/orders/eu"
SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
SNAPSHOT = PolicySnapshot(
    groups={"gold": Group("gold", Limit(Rates(1000)), topic_split=TopicSplit.EVEN)},
    attach=Attachments(namespaces={"acme/orders": "gold"}),
)


def limiter() -> Limiter:
    made = Limiter(SETTINGS, lambda group, kind, _: group.rates(kind))
    made.set_policies(SNAPSHOT, Nanos(1))
    return made


def test_each_name_is_told_once_governed_or_not() -> None:
    asked = limiter()
    for _ in range(2):
        asked.acquire(Request(namespace="acme/orders", topic=EU), Nanos(2))
        asked.acquire(
            Request(
                Kind.DISPATCH, namespace="free/ns", topic="persistent://free/ns/t", subscription="s"
            ),
            Nanos(2),
        )
    assert sorted(asked.names_asked()) == [
        (Kind.DISPATCH, None, "free/ns", "persistent://free/ns/t", "s"),
        (Kind.PUBLISH, None, "acme/orders", EU, None),
    ]


def test_a_new_snapshot_begins_anew() -> None:
    asked = limiter()
    asked.acquire(Request(namespace="acme/orders", topic=EU), Nanos(2))
    asked.set_policies(SNAPSHOT, Nanos(3))
    assert asked.names_asked() == []
