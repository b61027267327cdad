"""The core under any legal sequence of requests, events and clocks, with the largest legal numbers.

Law: nothing raises (a contained `Fault` is a failure here), `Broker.validate` holds after every step,
shares sum to the quotas, a bucket grants at most depth + integral + one request, due wakes come to an
end, and every message and record that is sent can be written and read back.

Among what it hears are parts of states, a daemon under its own name, and what others write in its name.

The long run is `HYPOTHESIS_PROFILE=nightly`. Not covered: whole clusters (tests/simulation), what a
broken part leaves behind (tests/simulation/test_injected_faults.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Fault, Publish
from rgd.core.broker.events import (
    DemandUnreported,
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    StateAnnounced,
    Stopping,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings, OnIsolation
from rgd.core.buckets.decision import Decision, PoliciesUnknown, Request, TooLarge
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import (
    ALL_ROWS,
    Ask,
    Claim,
    Goodbye,
    Hello,
    Message,
    Report,
    RoundRecord,
    Sender,
    Span,
)
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.rows_hash import advertised_hash
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    OnUnknown,
    Rate,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.units import (
    COUNT_MAX,
    MILLI,
    NS_PER_MS,
    NS_PER_S,
    QUOTA_MAX,
    RATE_MAX,
    WAIT_MS_MAX,
    Dimension,
    Kind,
    Nanos,
    Pair,
)
from rgd.wire.codec import decode, encode
from rgd.wire.frame import Entry
from rgd.wire.log_records import LogEncoder, LogReader
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.record import in_order

ME: Final = Sender("b1", 5)
#: Peers, a daemon under our name on either side of our incarnation, and who writes in our name.
SPEAKERS: Final = [
    *[Sender("b0", 1), Sender("b0", 2), Sender("b2", 1), Sender("b3", 7)],
    *[Sender("b1", 4), Sender("b1", 9), ME],
]
GROUPS: Final = ["gold", "silver", "lead"]
TENANT: Final = "acme"
NAMESPACES: Final = ["acme/orders", "acme/bills"]
TOPICS: Final = [f"persistent://{name}/{topic}" for name in NAMESPACES for topic in ("eu", "us")]

#: Every source of policies makes hashes of 63 bits, and records take no others.
POLICIES_HASH_MAX: Final = COUNT_MAX

NIGHTLY_TIMEOUT_S: Final = 1200

#: Most wakes within one moment: slices of a round, of shares, of policies and of topics.
WAKES_MAX: Final = 60

amounts = st.sampled_from(
    [0, 1, 2, 7, 1000, 10**9, 10**15, QUOTA_MAX, 1 << 53, (1 << 62) - 1, COUNT_MAX]
)
#: Times in ns: nothing, less than a slot, slots, rounds, a night, years.
spans = st.sampled_from(
    [0, 1, 10**6, 37 * 10**6, 10**8, 250 * 10**6, 10**9, 3 * 10**9, 10**11, 10**14, 10**17]
)
rates: st.SearchStrategy[Rate] = st.sampled_from(
    [None, 1, 999, MILLI, 50 * MILLI, 10**9 * MILLI, 10**15 * MILLI, QUOTA_MAX * MILLI]
)
pairs_of_rates = st.builds(Rates, rates, rates)
groups = st.builds(
    lambda name, publish, dispatch, blocked, shadow, policy, split: Group(
        name, Limit(publish, dispatch), blocked, shadow, policy, split
    ),
    st.sampled_from(GROUPS),
    pairs_of_rates,
    pairs_of_rates,
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, True]),
    st.sampled_from([None, None, *SharePolicyName]),
    st.sampled_from([None, *TopicSplit]),
)
local_limits = st.builds(LocalLimit, st.none() | pairs_of_rates, st.none() | pairs_of_rates)
snapshots = st.builds(
    lambda some, tenant, namespaces, topics, broker, of_topics, of_subscriptions: PolicySnapshot(
        {group.name: group for group in some},
        Attachments(tenant, namespaces, topics),
        Limits(broker, of_topics, of_subscriptions),
    ),
    st.lists(groups, max_size=3, unique_by=lambda one: one.name),
    st.dictionaries(st.just(TENANT), st.sampled_from(GROUPS), max_size=1),
    st.dictionaries(st.sampled_from(NAMESPACES), st.sampled_from(GROUPS), max_size=2),
    st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(GROUPS), max_size=2),
    local_limits,
    st.dictionaries(st.sampled_from(TOPICS), local_limits, max_size=2),
    st.dictionaries(st.tuples(st.sampled_from(TOPICS), st.just("sub")), local_limits, max_size=1),
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Any legal question."""
    group = draw(st.none() | st.sampled_from(GROUPS))
    topic = draw(st.none() | st.sampled_from(TOPICS))
    namespace = None
    if group is None:
        chosen = draw(st.sampled_from(NAMESPACES))
        namespace = chosen if topic is None else topic.split("//")[1].rpartition("/")[0]
    return Request(
        kind=draw(st.sampled_from(Kind)),
        messages=draw(amounts),
        bytes=draw(amounts),
        group=group,
        namespace=namespace,
        topic=topic,
        subscription=draw(st.sampled_from([None, "sub"])) if topic else None,
        partial=draw(st.booleans()),
        attempt=draw(st.sampled_from([0, 1, 1, 2, COUNT_MAX])),
        held=Pair(draw(amounts), draw(amounts)) if draw(st.booleans()) else Pair(),
    )


rows = st.builds(
    lambda group, kind, topics, admitted, wanted: UsageRow(
        group, kind, topics, admitted, wanted, Pair(COUNT_MAX, 0), Pair(0, COUNT_MAX)
    ),
    st.sampled_from([*GROUPS, "unheard-of", "invented"]),
    st.sampled_from(Kind),
    amounts,
    st.builds(Pair, amounts, amounts),
    st.builds(Pair, amounts, amounts),
)
reports = st.builds(
    lambda sender, sequence, told, is_whole, weight, members, part, name: Report(
        sender,
        sequence,
        NS_PER_S,
        UsageColumns.of(*told),
        part[0],
        advertised_hash(row for row in told if not row.is_idle) if is_whole else 7,
        weight,
        members=members,
        span=part[1],
        more=part[2],
        claim=name[0],
        rival=name[1],
        policies_hash=name[2],
    ),
    st.sampled_from(SPEAKERS),
    st.sampled_from([1, 2, 3, 4, 5, 1000, COUNT_MAX]),
    st.lists(rows, max_size=4, unique_by=lambda row: (row.group, row.kind)),
    st.booleans(),
    st.sampled_from([1, 1000, 1_000_000_000]),
    st.sampled_from([1, 3, COUNT_MAX]),
    st.sampled_from(
        [
            (False, ALL_ROWS, False),
            (False, ALL_ROWS, True),
            (True, ALL_ROWS, False),
            (True, Span(0, 1 << 63), True),
            (True, Span(1 << 63), False),
            (True, Span(5, 6), False),
        ]
    ),
    st.tuples(
        st.sampled_from(Claim),
        st.sampled_from([0, ME.incarnation, (1 << 64) - 1]),
        st.sampled_from([0, 1, POLICIES_HASH_MAX]),
    ),
)
messages: st.SearchStrategy[Message] = st.one_of(
    reports,
    st.builds(Hello, st.sampled_from(SPEAKERS)),
    st.builds(Goodbye, st.sampled_from(SPEAKERS)),
    st.builds(Ask, st.sampled_from(SPEAKERS), st.sampled_from(["b0", "b1"]), st.booleans()),
)
settings_of_brokers = st.builds(
    BrokerSettings,
    st.just(ME),
    weight=st.sampled_from([1, 1000, 1_000_000_000]),
    round_ns=st.sampled_from([50 * NS_PER_MS, NS_PER_S, 60 * NS_PER_S]),
    min_interval_ns=st.sampled_from([NS_PER_MS, 100 * NS_PER_MS]),
    on_isolation=st.sampled_from(OnIsolation),
    expected_brokers=st.sampled_from([1, 3, 100_000]),
    stored_peers=st.sampled_from([frozenset[str](), frozenset({"b0"})]),
    floor_ppm=st.sampled_from([0, 10_000, 1_000_000]),
    burst_ns=st.sampled_from([NS_PER_MS, 250 * NS_PER_MS, 60 * NS_PER_S]),
    request_max_ms=st.sampled_from([1, 10_000, 86_400_000]),
    policy=st.sampled_from(SharePolicyName),
    topic_split=st.sampled_from(TopicSplit),
    on_unknown=st.sampled_from(OnUnknown),
)


class Core(RuleBasedStateMachine):
    """One broker that hears itself, when it is heard."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.is_heard = True
        self.is_known = True
        self.said: list[Message] = []
        self.numbering, self.name_decoders = NameEncoder(), NameDecoders()
        self.log, self.reader = LogEncoder(), LogReader()
        self.broker = Broker(BrokerSettings(ME), Nanos(0))

    @initialize(
        chosen=settings_of_brokers, snapshot=snapshots, begin=st.sampled_from([0, 10**15, 10**18])
    )
    def begin(self, chosen: BrokerSettings, snapshot: PolicySnapshot, begin: int) -> None:
        self.now = begin
        self.broker = Broker(chosen, Nanos(begin))
        self.live(PoliciesChanged(Nanos(begin), snapshot))
        self.live(Started(Nanos(begin)))

    # What may happen.

    @rule(
        request=requests(),
        times=st.sampled_from([1, 1, 2, 29]),
        gap=spans.filter(lambda ns: ns <= 10**9),
    )
    def ask(self, request: Request, times: int, gap: int) -> None:
        for _ in range(times):
            self.acquire(request)
            if times > 1:
                self.pass_time(gap)

    @rule(
        request=requests(),
        most=amounts,
        count=st.sampled_from([3, 14, 29]),
        gap=st.sampled_from([20 * NS_PER_MS, 100 * NS_PER_MS, 210 * NS_PER_MS]),
    )
    def step_down(self, request: Request, most: int, count: int, gap: int) -> None:
        """Much for a while, and then little."""
        for amount in (most, 1):
            for _ in range(count):
                self.acquire(request._replace(messages=amount, bytes=amount))
                self.pass_time(gap)

    @rule(span=spans)
    def wait(self, span: int) -> None:
        self.pass_time(span)

    @rule(span=spans)
    def sleep(self, span: int) -> None:
        """Nobody wakes it meanwhile."""
        self.now += span

    @rule(message=messages)
    def hear(self, message: Message) -> None:
        self.live(MessageReceived(Nanos(self.now), message))

    @rule(message=messages, begin=st.integers(0, 3), count=st.integers(1, 300))
    def hear_ahead(self, message: Message, begin: int, count: int) -> None:
        """Of a state that is to come; it may never come."""
        if isinstance(message, Report):
            self.live(StateAnnounced(Nanos(self.now), message.rows, begin, begin + count))

    @rule(message=messages, back=spans)
    def hear_with_an_earlier_time(self, message: Message, back: int) -> None:
        self.live(MessageReceived(Nanos(max(0, self.now - back)), message))

    @rule(heard=st.booleans())
    def cut_off(self, heard: bool) -> None:
        self.is_heard = heard

    @rule(snapshot=snapshots, policies_hash=st.sampled_from([0, 1, POLICIES_HASH_MAX]))
    def change_policies(self, snapshot: PolicySnapshot, policies_hash: int) -> None:
        self.is_known = True
        self.live(PoliciesChanged(Nanos(self.now), snapshot, policies_hash))

    @rule()
    def lose_policies(self) -> None:
        self.is_known = False
        self.live(PoliciesChanged(Nanos(self.now), EMPTY_SNAPSHOT, known=False))

    @rule()
    def call_out(self) -> None:
        self.live(DemandUnreported(Nanos(self.now)))

    # How.

    def teardown(self) -> None:
        self.live(Stopping(Nanos(self.now)))

    def acquire(self, request: Request) -> None:
        before = self.tokens()
        try:
            answer = self.broker.limiter.acquire(request, Nanos(self.now))
        except UnknownGroup:
            assert request.group not in self.broker.sharing.snapshot.groups
            return
        if isinstance(answer, TooLarge):
            assert 1 <= answer.most <= COUNT_MAX
            return
        is_refused = not self.is_known and self.broker.settings.on_unknown is OnUnknown.DENY
        assert isinstance(answer, PoliciesUnknown) == is_refused
        if isinstance(answer, PoliciesUnknown):
            return
        self.check_decision(request, answer)
        self.check_buckets(before)

    def check_decision(self, request: Request, answer: Decision) -> None:
        assert 0 <= answer.messages <= request.messages
        assert 0 <= answer.bytes <= request.bytes
        assert 0 <= answer.retry_after_ms <= WAIT_MS_MAX
        if answer.granted and answer.limited_by is None:
            assert (answer.messages, answer.bytes) == (request.messages, request.bytes)

    def tokens(self) -> dict[GroupKey, list[int]]:
        """The tokens of every group's buckets now."""
        now = Nanos(self.now)
        return {
            state.key: [state.tokens(dimension, now) or 0 for dimension in Dimension]
            for state in self.broker.limiter.states()
        }

    def check_buckets(self, before: dict[GroupKey, list[int]]) -> None:
        """Nothing flows within a moment; nothing is above the depth."""
        for state in self.broker.limiter.states():
            known = before.get(state.key)
            for place, dimension in enumerate(Dimension):
                tokens = state.tokens(dimension, Nanos(self.now))
                if tokens is None:
                    continue
                assert tokens <= (state.share.of(dimension) or 0) * state.burst_ns
                if known is not None:
                    assert tokens <= known[place] or known[place] == 0

    def pass_time(self, span: int) -> None:
        self.now += span
        self.wake_all()

    def wake_all(self) -> None:
        """Wake it until nothing is due; that has to come to an end."""
        for _ in range(WAKES_MAX):
            wake_at = self.broker.wake_at
            assert wake_at is not None
            if wake_at > self.now:
                return
            self.live(Woken(Nanos(self.now)))
        raise AssertionError(f"still due at {self.broker.wake_at} after {WAKES_MAX} wakes")

    def live(self, event: Event) -> None:
        self.carry_out(self.broker.handle(event))
        while self.said and self.is_heard:
            # What it says comes back to it.
            self.carry_out(self.broker.handle(MessageReceived(Nanos(self.now), self.said.pop(0))))
        self.said.clear()

    def carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Fault):
                raise effect.error
            if isinstance(effect, Append):
                self.check_record(effect.record)
            elif isinstance(effect, Publish):
                self.said.append(self.round_trip(effect.message))

    def round_trip(self, message: Message) -> Message:
        again = decode(encode(message, self.numbering), self.name_decoders)
        plain = decode(encode(message))
        if isinstance(message, Report):
            assert isinstance(plain, Report)
            assert plain == replace(message, rows=plain.rows)
            assert plain.rows == message.rows.in_order()
            for column in (message.rows.wanted, message.rows.admitted):
                assert column.max(initial=0) <= RATE_MAX
        else:
            assert plain == again == message
        return plain

    def check_record(self, record: RoundRecord) -> None:
        payload = self.log.encode(record)
        entry = Entry("b1", 1, 1, payload.data, payload.properties, unknown=payload.metadata)
        assert self.reader.record(entry) == in_order(record)

    @invariant()
    def holds_its_laws(self) -> None:
        broker = self.broker
        broker.validate()
        for key in [GroupKey(name, kind) for name in GROUPS for kind in Kind]:
            if broker.sharing.policy(key) is SharePolicyName.MAX_MIN:
                self.check_sum(key)

    def check_sum(self, key: GroupKey) -> None:
        quota, shares = self.broker.sharing.quota(key), self.broker.shares(key).values()
        for name in ("messages", "bytes"):
            limit = getattr(quota, name)
            parts = [getattr(share, name) for share in shares]
            assert parts.count(None) in {0, len(parts)}
            if limit is None:
                assert None in parts
            else:
                assert min(parts) >= 0
                assert sum(parts) == limit


#: A sequence costs as much as some dozen examples of other laws.
Core.TestCase.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=30)
#: The nightly run takes minutes, more than one test may elsewhere.
TestCore = pytest.mark.timeout(NIGHTLY_TIMEOUT_S)(Core.TestCase)
