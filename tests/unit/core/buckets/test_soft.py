"""A soft limit: work beyond it is granted and told, in proportion, and refused by nobody.

Not covered: how a policy comes in (tests/unit/config, tests/integration/http/test_soft.py).
"""

from typing import Any

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Nanos, Pair
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, rates

START = Nanos(0)
#: 1,000 messages a second, soft beyond 800: full buckets have 250 and 200.
SOFT = 800_000


def limiter(soft_ppm: int | None = SOFT, split: TopicSplit | None = None) -> Limiter:
    made = LimiterAlone(BUCKETS, whole)
    follow(made, soft_ppm, split=split)
    return made


def follow(
    one: Limiter,
    soft_ppm: int | None,
    *,
    messages: float = 1000,
    split: TopicSplit | None = None,
    now: Nanos = START,
) -> None:
    limit = Limit(rates(messages), rates(messages))
    group = Group("gold", limit, soft_ppm=soft_ppm, topic_split=split)
    attached = Attachments(namespaces={NAMESPACE: "gold"})
    one.set_policies(PolicySnapshot({"gold": group}, attached), now)


def ask(one: Limiter, messages: int, now: Nanos = START, **said: Any) -> Decision:
    request = Request(messages=messages, namespace=NAMESPACE, topic=TOPIC)._replace(**said)
    answer = one.acquire(request, now)
    assert isinstance(answer, Decision)
    return answer


def state(one: Limiter, kind: Kind = Kind.PUBLISH) -> GroupState:
    found = one.state(key("gold", kind))
    assert found is not None
    return found


def over(one: Limiter, kind: Kind = Kind.PUBLISH) -> Pair:
    soft = state(one, kind).soft
    assert soft is not None
    return soft.shadow_refused


def test_a_divided_group_has_it_as_a_whole() -> None:
    one = limiter(split=TopicSplit.EVEN)
    ask(one, 200)
    assert ask(one, 20).over
