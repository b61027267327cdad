"""One broker under any sequence of events: it keeps its laws and never wakes in vain.

After every event the broker checks itself (`Broker.validate`). Not covered: what each event should
do (tests/unit/core/broker), several brokers (tests/simulation).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Effect, Halt, Publish
from rgd.core.broker.events import (
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    Stopping,
    Woken,
)
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings, OnIsolation
from rgd.core.buckets.decision import Request
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import NO_USAGE, UsageColumns
from rgd.core.exchange.messages import Ask, Claim, Goodbye, Hello, Message, Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos, Pair
from tests.support.columns import advertised_hash
from tests.unit.core.values import advertised

pytestmark = pytest.mark.slow

ME = Sender("b1", 5)

#: Most wakes in one moment: a round ends in a slice for each group, and what was held for too long
#: before anybody looked is given up at once.
WAKES_MAX = 3
SPEAKERS = [
    Sender("b0", 1),
    Sender("b0", 2),
    Sender("b2", 1),
    Sender("b1", 9),
    Sender("b1", 3),
]

rates = st.sampled_from([0, 1_000, 30_000, 500_000])
rows = st.builds(
    lambda group, wanted, size: UsageRow(
        group, Kind.PUBLISH, 1, Pair(wanted, size), Pair(wanted, size)
    ),
    st.sampled_from(["gold", "silver"]),
    rates,
    rates,
)
reports = st.builds(
    lambda sender, sequence, told, full, is_whole, claim, names_us: Report(
        sender,
        sequence,
        1,
        UsageColumns.of(*told),
        full,
        advertised_hash(row for row in told if not row.is_idle) if is_whole else 7,
        claim=claim,
        rival=ME.incarnation if names_us else 0,
    ),
    st.sampled_from(SPEAKERS),
    st.integers(1, 6),
    st.lists(rows, max_size=2, unique_by=lambda row: row.group),
    st.booleans(),
    st.booleans(),
    st.sampled_from(Claim),
    st.booleans(),
)
messages: st.SearchStrategy[Message] = st.one_of(
    reports,
    st.builds(Hello, st.sampled_from(SPEAKERS)),
    st.builds(Goodbye, st.sampled_from(SPEAKERS)),
    st.builds(Ask, st.sampled_from(SPEAKERS), st.sampled_from(["b0", "b1"]), st.booleans()),
)
groups = st.builds(
    lambda name, messages_max, bytes_max, blocked: Group(
        name, Limit(Rates(messages_max, bytes_max)), blocked=blocked
    ),
    st.sampled_from(["gold", "silver"]),
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 10**9),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 3000)),
        st.tuples(st.just("stand still"), st.integers(1, 9000)),
        st.tuples(st.just("hear"), messages),
        st.tuples(st.just("read back"), st.booleans()),
        st.tuples(st.sampled_from(["gold", "silver"]), st.integers(0, 300)),
        st.tuples(
            st.just("policies"), st.lists(groups, max_size=2, unique_by=lambda one: one.name)
        ),
    ),
    max_size=30,
)
settings_of_brokers = st.builds(
    BrokerSettings,
    st.just(ME),
    on_isolation=st.sampled_from(OnIsolation),
    expected_brokers=st.integers(1, 3),
    stored_peers=st.sampled_from([frozenset[str](), frozenset({"b0"})]),
    floor_ppm=st.sampled_from([0, 10_000]),
)


@dataclass
class Life:
    """A broker, what it said and nobody has read back yet, and the moment."""

    broker: Broker
    now: int = 0
    said: list[Message] = field(default_factory=list)
    sequence: int = 0
    #: What somebody who hears all of it knows of us.
    mirror: UsageMap = field(default_factory=UsageMap)
    #: What was advertised before the event.
    advertised: UsageColumns = field(default_factory=lambda: NO_USAGE)

    def live(self, event: Event) -> Sequence[Effect]:
        self.advertised = advertised(self.broker.rounds)
        effects = self.broker.handle(event)
        for effect in effects:
            if isinstance(effect, Publish):
                self.note(effect.message)
        self.broker.validate()
        return effects

    def note(self, message: Message) -> None:
        assert message.sender == ME
        if isinstance(message, Report):
            assert message.sequence == self.sequence + 1
            self.sequence = message.sequence
            told = advertised(self.broker.rounds)
            assert message.members == len(self.broker.peers) + 1
            assert len(set(zip(message.rows.groups, message.rows.kinds.tolist(), strict=True))) == (
                len(message.rows)
            )
            if message.full:
                # A state that is due is sent before the work of the same wake changes what is advertised.
                assert message.rows in (self.advertised, told)
            self.mirror.apply(message)
            # Whoever has heard all of it holds what the hash is of: it need not ask.
            assert self.mirror.hash_of("b1") == message.rows_hash
        self.said.append(message)

    def wait(self, milliseconds: int) -> None:
        until = self.now + milliseconds * NS_PER_MS
        while (due := self.broker.wake_at) is not None and due <= until:
            self.now = max(self.now, due)
            for _ in range(WAKES_MAX):
                self.live(Woken(Nanos(self.now)))
                assert self.broker.wake_at is not None
                if self.broker.wake_at > self.now:
                    break
            # Whatever was due has been done.
            due = self.broker.wake_at
            assert due is not None
            assert due > self.now
        self.now = until

    def read_back(self) -> None:
        coming, self.said = self.said, []
        for message in coming:
            self.live(MessageReceived(Nanos(self.now), message))

    def ask(self, group: str, count: int) -> None:
        request = Request(messages=count, bytes=10 * count, group=group)
        try:
            self.broker.limiter.acquire(request, Nanos(self.now))
        except UnknownGroup:
            assert group not in self.broker.sharing.snapshot.groups
        self.live(Woken(Nanos(self.now)))

    def change(self, chosen: list[Group]) -> None:
        snapshot = PolicySnapshot({group.name: group for group in chosen})
        self.live(PoliciesChanged(Nanos(self.now), snapshot))
        for state in self.broker.limiter.states():
            if snapshot.groups[state.key.group].blocked:
                assert state.share == Rates(0, 0)


@settings(max_examples=300)
@given(chosen=settings_of_brokers, first=groups, script=steps)
def test_whatever_happens_a_broker_keeps_its_laws(
    chosen: BrokerSettings, first: Group, script: list[tuple[str, object]]
) -> None:
    life = Life(Broker(chosen, Nanos(0)))
    life.change([replace(first, blocked=False)])
    life.live(Started(Nanos(0)))
    for step, what in script:
        match step, what:
            case "wait", int(milliseconds):
                life.wait(milliseconds)
            case "stand still", int(milliseconds):
                life.now += milliseconds * NS_PER_MS
                life.live(Woken(Nanos(life.now)))
            case "hear", message:
                effects = life.live(MessageReceived(Nanos(life.now), message))  # type: ignore[arg-type]
                if any(isinstance(effect, Halt) for effect in effects):
                    # Two rounds are enough to know that the name is ours.
                    assert life.now < 2 * life.broker.settings.round_ns
                    return
                if life.broker.name.is_lost:
                    assert life.broker.mode is Mode.YIELDING
            case "read back", _:
                life.read_back()
            case ("gold" | "silver") as group, int(count):
                life.ask(group, count)
            case "policies", list(groups_chosen):
                life.change(groups_chosen)
            case _:
                raise AssertionError(step)
    is_lost = life.broker.name.is_lost
    *_, goodbye = life.live(Stopping(Nanos(life.now)))
    assert (goodbye == Publish(Goodbye(ME))) is not is_lost
