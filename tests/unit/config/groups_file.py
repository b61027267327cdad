"""A groups file that says everything there is to say, and the snapshot it makes."""

from pathlib import Path

from rgd.config.groups import load_groups
from rgd.core.policies.model import (
    UNLIMITED,
    Attachments,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    SharePolicyName,
)
from rgd.core.policies.snapshot import PolicySnapshot

TOPIC = "persistent://acme/orders/eu"

EVERYTHING = """
groups:
  gold:    {publish: {messages: 1000, bytes: 5e6}, dispatch: {messages: 2000}, policy: max-min, shadow: false}
  trial:   {publish: {messages: 50}, blocked: false}
  frozen:  {blocked: true, shadow: true, soft: 0.75, policy: steal}
attach:
  tenants:    {acme: gold}
  namespaces: {acme/orders: trial}
  topics:     {"persistent://acme/orders/eu": gold}
limits:
  broker:     {dispatch: {bytes: 1e8}}
  topics:     {"persistent://acme/orders/eu": {publish: {messages: 20}}}
  subscriptions:
    "persistent://acme/orders/eu": {audit: {dispatch: {messages: 0.5}}}
  namespaces: {acme/orders: {publish: {messages: 30}, dispatch: {}}}
  namespace_subscriptions: {acme/orders: {dispatch: {messages: 6}}}
  topic_subscriptions: {"persistent://acme/orders/eu": {dispatch: {bytes: 7}}}
backlog_quotas:
  namespaces:
    acme/orders:
      size: {limit_bytes: 1e9, action: producer_request_hold}
      age: {limit_s: 3600, action: consumer_backlog_eviction}
  topics:
    "persistent://acme/orders/eu": {size: {limit_bytes: 5, action: producer_exception}}
"""

SNAPSHOT = PolicySnapshot(
    groups={
        "gold": Group(
            "gold",
            Limit(Rates(1_000_000, 5_000_000_000), Rates(2_000_000, None)),
            policy=SharePolicyName.MAX_MIN,
        ),
        "trial": Group("trial", Limit(Rates(50_000, None))),
        "frozen": Group(
            "frozen", blocked=True, shadow=True, soft_ppm=750_000, policy=SharePolicyName.STEAL
        ),
    },
    attach=Attachments({"acme": "gold"}, {"acme/orders": "trial"}, {TOPIC: "gold"}),
    limits=Limits(
        broker=LocalLimit(dispatch=Rates(None, 100_000_000_000)),
        namespaces={"acme/orders": LocalLimit(Rates(30_000, None), UNLIMITED)},
        topics={TOPIC: LocalLimit(Rates(20_000, None))},
        subscriptions={(TOPIC, "audit"): LocalLimit(dispatch=Rates(500, None))},
        namespace_subscriptions={"acme/orders": LocalLimit(dispatch=Rates(6_000, None))},
        topic_subscriptions={TOPIC: LocalLimit(dispatch=Rates(None, 7_000))},
    ),
    backlogs=Backlogs(
        namespaces={
            "acme/orders": BacklogQuotas(
                BacklogQuota(size_bytes=1_000_000_000),
                BacklogQuota(age_s=3600, action=BacklogAction.EVICT),
            )
        },
        topics={TOPIC: BacklogQuotas(BacklogQuota(size_bytes=5, action=BacklogAction.REFUSE))},
    ),
)


def load(tmp_path: Path, text: str) -> PolicySnapshot:
    """What a groups file with this text says."""
    path = tmp_path / "groups.yaml"
    path.write_text(text)
    return load_groups(path)
