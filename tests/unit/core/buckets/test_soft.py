"""A soft limit: work beyond it is granted and told, in proportion, and refused by nobody.

Not covered: how a policy comes in (tests/unit/config, tests/integration/http/test_soft.py).
"""

from typing import Any

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest
from rgd.core.policies.model import Attachments, Group, Limit, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.model import PPM
from rgd.core.units import MILLI, Kind, Nanos, Pair
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

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


def test_work_beyond_it_is_granted_and_told() -> None:
    one = limiter()
    within = ask(one, 200)
    assert (within.granted, within.over, within.group) == (True, False, None)
    beyond = ask(one, 50)
    assert (beyond.granted, beyond.messages, beyond.over, beyond.group) == (True, 50, True, "gold")
    refused = ask(one, 1)
    assert (refused.granted, refused.over) == (False, False)
    assert over(one) == Pair(50)


def test_as_much_is_told_as_is_beyond_it() -> None:
    one = limiter()
    # 1,000 a second for ten seconds: a fifth is beyond.
    told = sum(ask(one, 1, ms(at)).over for at in range(10_000))
    assert 0.17 < told / 10_000 <= 0.2


def test_parts_and_reads_are_told() -> None:
    one = limiter()
    read: dict[str, Any] = {"kind": Kind.DISPATCH, "subscription": "audit", "partial": True}
    assert not ask(one, 200, **read).over
    part = ask(one, 100, **read)
    assert (part.messages, part.over, part.limited_by) == (50, True, "resource_group")
    assert over(one, Kind.DISPATCH) == Pair(50)


def test_a_divided_group_has_it_as_a_whole() -> None:
    one = limiter(split=TopicSplit.EVEN)
    ask(one, 200)
    assert ask(one, 20).over


def test_leases_are_told() -> None:
    one = limiter()
    leases = Leases(one)
    name = (Kind.PUBLISH, None, NAMESPACE, TOPIC, None)
    told = []
    for at in range(3):
        answer = leases.open(LeaseRequest(name, Pair(120 * MILLI)), str(at), START)
        assert isinstance(answer, LeaseAnswer)
        told.append((answer.messages, answer.decision.over))
    assert told == [(120, False), (65, False), (32, True)]


def test_it_follows_the_share_and_the_policy() -> None:
    one = limiter()
    ask(one, 1)
    follow(one, PPM // 2, messages=100, now=ms(0))
    soft = state(one).soft
    assert ask(one, 1).over is False
    assert soft is not None
    assert soft.share.messages == 50 * MILLI
    one.set_share(key(), rates(10), ms(1))
    assert soft.share.messages == 5 * MILLI
    follow(one, None, now=ms(2))
    assert not ask(one, 1, ms(200)).over
    assert state(one).soft is None


def test_without_one_nothing_is_told_and_the_fast_path_is_taken() -> None:
    one = limiter(None)
    assert not ask(one, 250).over
    assert one.chain_of((Kind.PUBLISH, None, NAMESPACE, TOPIC, None), START).is_plain
