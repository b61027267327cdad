"""A round that ends in pieces, whatever happens between them: each count once, each row once.

Pieces are one group long here. Not covered: one piece for all (test_core_fuzz.py), what a round tells
(tests/unit/core/broker/test_rounds.py).
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.bounds import Bounds, RoundBounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Publish
from rgd.core.broker.events import Event, MessageReceived, PoliciesChanged, Started, Stopping, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.messages import Hello, Report, Sender
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Nanos

ME = Sender("b1", 5)
GROUPS = ["g0", "g1", "g2", "g3"]
SNAPSHOT = PolicySnapshot({name: Group(name, Limit(Rates(50_000))) for name in GROUPS})

SMALL = Bounds(rounds=RoundBounds(early_groups=1, piece_rows=1))

#: Between two pieces somebody asks for something, or nobody.
happenings = st.lists(
    st.tuples(st.sampled_from(GROUPS), st.integers(0, 80), st.booleans()), max_size=4
)


class Life:
    """A broker, what it granted, and what its reports and records say."""

    def __init__(self) -> None:
        self.broker = Broker(BrokerSettings(ME, bounds=SMALL), Nanos(0))
        self.granted = Counter[str]()
        self.logged = Counter[str]()
        self.mirror = UsageMap()
        self.live(PoliciesChanged(Nanos(0), SNAPSHOT))
        self.live(Started(Nanos(0)))
        self.live(MessageReceived(Nanos(0), Hello(ME)))
        self.live(Woken(Nanos(0)))

    def live(self, event: Event) -> None:
        for effect in self.broker.handle(event):
            self.note(effect)

    def note(self, effect: Effect) -> None:
        if isinstance(effect, Append):
            groups = Counter(effect.record.rows.usage.groups)
            assert max(groups.values(), default=0) <= 1
            for row in effect.record.rows:
                usage, seconds = row.usage, effect.record.period_ns / NS_PER_S
                # What is logged of a round never goes back, and never runs ahead.
                total = row.admitted_total.messages
                assert self.logged[usage.group] <= total <= self.granted[usage.group]
                assert seconds > 0
                self.logged[usage.group] = total
        elif isinstance(effect, Publish) and isinstance(effect.message, Report):
            assert max(Counter(effect.message.rows.groups).values(), default=0) <= 1
            self.mirror.apply(effect.message)

    def ask(self, group: str, count: int, now: int) -> None:
        answer = self.broker.limiter.acquire(Request(messages=count, group=group), Nanos(now))
        assert isinstance(answer, Decision)
        self.granted[group] += answer.messages


@pytest.mark.slow
@given(script=st.lists(st.lists(happenings, min_size=6, max_size=6), min_size=1, max_size=4))
def test_requests_between_the_pieces_are_counted_once(
    script: list[list[list[tuple[str, int, bool]]]],
) -> None:
    life, now = Life(), 0
    for number, moments in enumerate(script, start=1):
        for group, count, _ in moments[0]:
            life.ask(group, count, now + 500 * NS_PER_MS)
        now = number * NS_PER_S
        life.live(Woken(Nanos(now)))
        for moment in moments[1:]:
            for group, count, _ in moment:
                life.ask(group, count, now)
            if life.broker.rounds.is_ending:
                due = life.broker.wake_at
                assert due is not None
                assert due <= now
            now += NS_PER_MS
            life.live(Woken(Nanos(now)))
        while life.broker.rounds.is_ending:
            life.live(Woken(Nanos(now)))
        # Who has heard the whole of a round holds what the peers should.
        assert life.mirror.hash_of("b1") == life.broker.rounds.suppression.hash_of()
    life.live(Stopping(Nanos(now + NS_PER_MS)))
    assert life.logged == +life.granted


def test_a_message_between_the_pieces_says_the_hash_of_what_was_advertised() -> None:
    life = Life()
    now = NS_PER_S // 2
    life.ask("g0", 10, now)
    life.ask("g1", 10, now)
    life.ask("g2", 10, now)
    life.live(Woken(Nanos(NS_PER_S)))
    assert life.broker.rounds.is_ending
    now = NS_PER_S + NS_PER_MS
    life.ask("g3", 100, now)
    life.ask("g3", 100, now)
    reports: list[Report] = []
    for effect in life.broker.handle(Woken(Nanos(now))):
        assert isinstance(effect, Publish)
        assert isinstance(effect.message, Report)
        reports.append(effect.message)
    for report in reports:
        life.mirror.apply(report)
        assert life.mirror.hash_of("b1") == report.rows_hash
