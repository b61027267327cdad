"""The core under any legal sequence of requests, events and clocks, with the largest legal numbers.

Law: nothing raises, `Broker.validate` holds after every step,
shares sum to the quotas, a bucket grants at most depth + integral + one request, due wakes come to an
end, and every message and record that is sent can be written and read back.

Among what it hears are parts of states, a daemon under its own name, and what others write in its name.

The long run is `HYPOTHESIS_PROFILE=nightly`. Not covered: whole clusters (tests/simulation).
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rgd.core.backlog.model import (
    TIME_MS_MAX,
    Ledger,
    Position,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
    check_backlog,
)
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Publish, SendStockReport
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    StockBrokersListed,
    StockReportReceived,
    Stopping,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, OverBacklog, PoliciesUnknown, Request, TooLarge
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.messages import Message, Report, RoundRecord
from rgd.core.policies.model import GroupKey, OnUnknown, SharePolicyName
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.stock.messages import StockReport
from rgd.core.units import COUNT_MAX, NS_PER_MS, RATE_MAX, WAIT_MS_MAX, Dimension, Kind, Nanos, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.frame import Entry
from rgd.wire.log_records import LogEncoder, LogReader
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from rgd.wire.record import in_order
from tests.property.core_events import (
    BACKLOG_READ_MS,
    GROUPS,
    ME,
    NIGHTLY_TIMEOUT_S,
    POLICIES_HASH_MAX,
    STOCK_NAMES,
    TOPICS,
    WAKES_MAX,
    amounts,
    messages,
    requests,
    settings_of_brokers,
    snapshots,
    spans,
    stock_reports,
)
from tests.support.there import there


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

    @rule(request=requests(), messages=amounts, size=amounts, more=st.booleans(), gap=spans)
    def settle(self, request: Request, messages: int, size: int, more: bool, gap: int) -> None:
        """Ask, and say later what was not used, or what was used beyond it, true or not."""
        if gap <= 10**9:
            self.acquire(request)
            self.pass_time(gap)
        sign = -1 if more else 1
        name = (request.kind, request.group, request.namespace, request.topic, request.subscription)
        try:
            settled = self.broker.limiter.settle(
                name, Pair(sign * messages, sign * size), Nanos(self.now)
            )
        except UnknownGroup:
            assert request.group not in self.broker.sharing.snapshot.groups
            return
        assert 0 <= sign * settled.messages <= messages
        assert 0 <= sign * settled.bytes <= size
        self.check_buckets({})

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

    @rule(
        topic=st.sampled_from(TOPICS),
        entry=st.sampled_from([None, 0, 7, 49, 99]),
        size=amounts,
        time_ms=st.sampled_from([None, 0, BACKLOG_READ_MS, TIME_MS_MAX]),
        source=st.sampled_from(Source),
    )
    def report_backlog(
        self, topic: str, entry: int | None, size: int, time_ms: int | None, source: Source
    ) -> None:
        oldest = None if entry is None else Position(3, entry)
        subscription = SubscriptionBacklog("s", oldest, time_ms)
        ledgers = (Ledger(3, 50, size, time_ms or 0), Ledger(4, 50, size))
        report = TopicBacklog(topic, ledgers, (subscription,), source, BACKLOG_READ_MS)
        check_backlog(report)
        self.live(BacklogsReported(Nanos(self.now), (report,)))

    @rule(topic=st.sampled_from(TOPICS), source=st.sampled_from(Source))
    def withdraw_backlog(self, topic: str, source: Source) -> None:
        self.live(BacklogsWithdrawn(Nanos(self.now), source, (topic,)))

    @rule(request=requests())
    def check_backlogs(self, request: Request) -> None:
        self.live(BacklogCheckAsked(Nanos(self.now)))
        self.pass_time(NS_PER_MS)
        self.acquire(request)

    @rule(report=stock_reports, published_ms=amounts)
    def hear_stock(self, report: StockReport, published_ms: int) -> None:
        self.live(StockReportReceived(Nanos(self.now), report, published_ms))

    @rule(names=st.frozensets(st.sampled_from(STOCK_NAMES)))
    def list_stock(self, names: frozenset[str]) -> None:
        self.live(StockBrokersListed(Nanos(self.now), names))

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
        if isinstance(answer, OverBacklog):
            assert request.kind is Kind.PUBLISH
            assert request.topic is not None
            assert 1 <= answer.retry_after_ms <= WAIT_MS_MAX
            state = there(self.broker.backlogs.get(request.topic))
            assert state.blocked is not None
            after = self.tokens()  # the request may be the first of its group
            assert {key: after[key] for key in before} == before
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
            wake_at = there(self.broker.wake_at)
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
            if isinstance(effect, Append):
                self.check_record(effect.record)
            elif isinstance(effect, SendStockReport):
                assert decode_stock_report(encode_stock_report(effect.report)) == effect.report
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
        assert self.reader.read(entry) == in_order(record)

    @invariant()
    def holds_its_laws(self) -> None:
        broker = self.broker
        broker.validate()
        for key in [GroupKey(name, kind) for name in GROUPS for kind in Kind]:
            if broker.sharing.policies.policy(key) is SharePolicyName.MAX_MIN:
                self.check_sum(key)

    def check_sum(self, key: GroupKey) -> None:
        quota, shares = self.broker.sharing.policies.quota(key), self.broker.shares(key).values()
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
Core.TestCase.settings = settings(max_examples=settings().max_examples // 5, stateful_step_count=30)
#: The nightly run takes minutes, more than one test may elsewhere.
TestCore = pytest.mark.timeout(NIGHTLY_TIMEOUT_S)(Core.TestCase)
