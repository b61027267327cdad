"""One lease after the other: how much it has, when it ends, what goes back, what counts as demand.

Not covered: any sequence of calls (tests/property/test_leases.py), HTTP
(tests/integration/http/test_leases.py), an hour of callers that crash (tests/simulation).
"""

import pytest

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.bounds import LeaseBounds
from rgd.core.buckets.decision import Decision, Name, OverBacklog, Request
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import UnknownGroup
from rgd.core.leases import model
from rgd.core.leases.leases import LeaseEvent, Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal, TooManyLeases, UnknownLease
from rgd.core.policies.model import Attachments, BacklogAction, Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Dimension, Kind, Nanos, Pair
from tests.support.limiter_alone import numbered
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

START = Nanos(0)
NAME: Name = (Kind.PUBLISH, None, NAMESPACE, TOPIC, None)
NOTHING = Pair()


def limiter(messages: float | None = 1000) -> Limiter:
    """One group on the namespace, in both kinds."""
    made = Limiter(BUCKETS, numbered(lambda one, kind, _: one.rates(kind)))
    follow(made, messages)
    return made


def follow(
    one: Limiter, messages: float | None, size: float | None = None, *, name: str = "gold"
) -> None:
    limit = Limit(rates(messages, size), rates(messages, size))
    attached = Attachments(namespaces={NAMESPACE: name})
    one.set_policies(PolicySnapshot({name: Group(name, limit)}, attached), START)


def wants(messages: float, size: float = 0) -> Pair:
    return Pair(round(messages * MILLI), round(size * MILLI))


def opened(
    leases: Leases,
    messages: float = 100,
    size: float = 0,
    *,
    name: Name = NAME,
    lease_id: str = "one",
) -> LeaseAnswer:
    answer = leases.open(LeaseRequest(name, wants(messages, size)), lease_id, START)
    assert isinstance(answer, LeaseAnswer)
    return answer


def renewed(leases: Leases, left: int, now: Nanos, lease_id: str = "one") -> LeaseAnswer:
    answer = leases.renew(lease_id, Renewal(Pair(left)), now)
    assert isinstance(answer, LeaseAnswer)
    return answer


def group_of(one: Limiter, kind: Kind = Kind.PUBLISH) -> GroupState:
    state = one.state(key("gold", kind))
    assert state is not None
    return state


def remaining(one: Limiter, now: Nanos = START, kind: Kind = Kind.PUBLISH) -> int:
    return group_of(one, kind).remaining(Dimension.MESSAGES, now)


def test_a_lease_leaves_half_of_what_there_is_to_others() -> None:
    one = limiter()
    leases = Leases(one)
    assert [opened(leases, 600, lease_id=name).messages for name in "abc"] == [125, 62, 31]
    assert remaining(one) == 32


def test_a_lease_ends_by_the_clock_and_its_tokens_stay_taken() -> None:
    one = limiter()
    leases = Leases(one)
    opened(leases, 100)
    with pytest.raises(UnknownLease):
        renewed(leases, 100, ms(10_000))
    assert leases.events()[LeaseEvent.EXPIRED] == 1
    assert group_of(one).counters.admitted == Pair(100)
    assert group_of(one).counters.returned == Pair()
    assert not leases.table.loads


def test_a_renewal_counts_the_lifetime_from_itself() -> None:
    leases = Leases(limiter())
    opened(leases, 100)
    renewed(leases, 0, ms(9_999))
    assert renewed(leases, 0, ms(15_000)).expires_in_ms == 10_000


def test_nothing_goes_back_to_a_group_that_is_gone() -> None:
    one = limiter()
    leases = Leases(one)
    opened(leases, 100, name=(Kind.PUBLISH, "gold", None, None, None))
    follow(one, 1000, name="silver")
    with pytest.raises(UnknownGroup):
        renewed(leases, 0, START)
    assert leases.release("one", Pair(100), START) == NOTHING


def test_a_refused_lease_leaves_no_trace_but_demand() -> None:
    one = limiter(0)
    leases = Leases(one)
    refused = leases.open(LeaseRequest(NAME, wants(1000)), "one", START)
    assert isinstance(refused, Decision)
    assert not refused.granted
    assert refused.retry_after_ms == BUCKETS.round_ms
    assert len(leases.table) == len(leases.table.loads) == 0
    # What came in the first 20 ms.
    assert group_of(one).counters.refused_new_messages == 20


def test_a_blocked_topic_gives_no_lease() -> None:
    one = limiter()
    leases = Leases(one)
    opened(leases, 100)
    one.block(TOPIC, Blocked(QuotaType.SIZE, BacklogAction.HOLD, ms(1000), ms(500)))
    assert isinstance(leases.open(LeaseRequest(NAME, wants(1)), "b", START), OverBacklog)
    assert isinstance(leases.renew("one", Renewal(NOTHING), START), OverBacklog)
    one.block(TOPIC, None)
    assert renewed(leases, 0, START).messages == 75


def test_leases_are_bounded_in_all_and_for_each_holder() -> None:
    leases = Leases(limiter(), LeaseBounds(leases_max=3, leases_per_holder_max=2))

    def ask(lease_id: str, holder: str, now: Nanos = START) -> None:
        leases.open(LeaseRequest(NAME, wants(1), holder=holder), lease_id, now)

    ask("a", "alice")
    ask("b", "alice")
    with pytest.raises(TooManyLeases, match="the caller has 2"):
        ask("c", "alice")
    ask("c", "bob")
    with pytest.raises(TooManyLeases, match="the daemon has 3"):
        ask("d", "carol")
    leases.release("a", NOTHING, START)
    ask("d", "alice")
    # Those that expire make room.
    ask("e", "alice", Nanos(model.TTL_DEFAULT_NS))
    leases.end_round(Nanos(model.TTL_DEFAULT_NS))
    assert len(leases.table) == 1


def test_expired_leases_take_no_room_of_their_holder() -> None:
    leases = Leases(limiter(10**6), LeaseBounds(leases_per_holder_max=200))

    def ask(lease_id: str, holder: str, ttl_ns: int, now: Nanos) -> None:
        request = LeaseRequest(NAME, wants(1), ttl_ns=ttl_ns, holder=holder)
        assert isinstance(leases.open(request, lease_id, now), LeaseAnswer)

    # Those of bob have all expired before the first one of alice.
    for at in range(200):
        ask(f"bob {at}", "bob", 2 * NS_PER_S, START)
    for at in range(200):
        ask(f"alice {at}", "alice", 4 * NS_PER_S if at == 7 else 20 * NS_PER_S, START)
    with pytest.raises(TooManyLeases, match="the caller"):
        ask("early", "alice", NS_PER_S, ms(3_999))
    ask("in time", "alice", NS_PER_S, ms(4_000))
    # The new one is the next to expire.
    with pytest.raises(TooManyLeases, match="the caller"):
        ask("early", "alice", NS_PER_S, ms(4_999))
    ask("next", "alice", 10 * NS_PER_S, ms(5_000))
    # A renewal may say that it is to expire earlier.
    leases.renew("alice 1", Renewal(NOTHING, ttl_ns=NS_PER_S), ms(6_000))
    with pytest.raises(TooManyLeases, match="the caller"):
        ask("early", "alice", NS_PER_S, ms(6_999))
    ask("last", "alice", NS_PER_S, ms(7_000))


def test_a_lifetime_is_bounded() -> None:
    leases = Leases(limiter())
    request = LeaseRequest(NAME, wants(1), ttl_ns=10**18)
    answer = leases.open(request, "one", START)
    assert isinstance(answer, LeaseAnswer)
    assert answer.expires_in_ms == model.TTL_MAX_NS // NS_PER_MS


def test_what_was_taken_without_a_limit_does_not_go_back_into_one() -> None:
    one = limiter(1_000_000)
    leases = Leases(one)
    taken = opened(leases, 0, 1_000_000)
    assert taken.bytes == 1_000_000
    opened(leases, 0, 1_000_000, lease_id="two")
    follow(one, 1_000_000, 1_000)
    decision = one.acquire(Request(bytes=250, namespace=NAMESPACE, topic=TOPIC), START)
    assert isinstance(decision, Decision)
    assert decision.granted

    assert leases.release("one", Pair(0, taken.bytes), START) == NOTHING
    leases.renew("two", Renewal(Pair(0, 1_000_000)), START)
    assert leases.release("two", Pair(0, 1_000_000), START) == NOTHING
    assert one.group(one.snapshot.groups["gold"], Kind.PUBLISH, START).bytes_tokens == 0
