"""Slots that are freed and given again, whatever comes and goes: nothing of one group is another's.

A broker with very few slots, beside a naive model of dicts by name, which has no slots. After every
event the map holds what the model holds (but for rows that were refused, which the map says), and every
share is the one that follows from the rows; and once all is quiet nothing that nobody uses has a slot.
Not covered: how many slots there are in truth (tests/unit/core/broker/test_slot_ids.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.bounds import Bounds, ExchangeBounds, SharingBounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Publish
from rgd.core.broker.events import Event, MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Goodbye, Hello, Report, Sender
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Kind, Nanos, Pair
from tests.unit.core.values import advertised

pytestmark = pytest.mark.slow

ME = Sender("me", 1)
PEERS = ["p1", "p2"]
#: The first four may have policies.
GROUPS = [f"g{number}" for number in range(12)]
ROUND_MS = 1000

rows = st.builds(
    lambda group, kind, wanted: UsageRow(group, kind, 1, Pair(wanted), Pair(wanted)),
    st.sampled_from(GROUPS),
    st.sampled_from(Kind),
    st.sampled_from([0, 5_000, 70_000]),
)
row_lists = st.lists(rows, max_size=8, unique_by=lambda row: (row.group, row.kind))
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("report"), st.sampled_from(PEERS), row_lists, st.booleans()),
        st.tuples(st.just("again"), st.sampled_from(PEERS)),
        st.tuples(st.just("goodbye"), st.sampled_from(PEERS)),
        st.tuples(st.just("policies"), st.sets(st.sampled_from(GROUPS[:4]))),
        st.tuples(st.just("ask"), st.sampled_from(GROUPS[:4]), st.integers(1, 200)),
        st.tuples(st.just("wait"), st.sampled_from([100, ROUND_MS, ROUND_MS])),
    ),
    max_size=25,
)
Told = dict[GroupKey, UsageRow]


#: Very few slots, freed a few at a time.
FEW = Bounds(
    exchange=ExchangeBounds(slots_max=8, unknown_slots_max=6, unknown_rows_max=4, freed_a_round=4),
    sharing=SharingBounds(changes_max=1),
)


class Life:
    """A broker that hears itself at once, and what each peer told by name."""

    def __init__(self) -> None:
        self.now = 0
        self.broker = Broker(BrokerSettings(ME, expiry_rounds=1000, bounds=FEW), Nanos(0))
        self.told: dict[str, Told] = {peer: {} for peer in PEERS}
        self.latest: dict[str, Report] = {}
        self.sequence = 0
        self.incarnation = 1
        self.snapshot = PolicySnapshot({})
        self.live(Started(Nanos(0)))

    def live(self, event: Event) -> None:
        for effect in self.broker.handle(event):
            if isinstance(effect, Publish):
                self.live(MessageReceived(Nanos(self.now), effect.message))

    def report(self, peer: str, told: list[UsageRow], *, full: bool) -> None:
        known = {} if full else dict(self.told[peer])
        known |= {GroupKey(row.group, row.kind): row for row in told}
        self.told[peer] = {key: row for key, row in known.items() if not row.is_idle}
        self.sequence += 1
        sender = Sender(peer, self.incarnation)
        numbers = np.array([GROUPS.index(row.group) for row in told], np.int64)
        columns = replace(UsageColumns.of(*told), groups=NumberedNames(GROUPS, numbers))
        self.latest[peer] = Report(sender, self.sequence, NS_PER_S, columns, full=full)
        self.live(MessageReceived(Nanos(self.now), self.latest[peer]))

    def again(self, peer: str) -> None:
        """The very same columns, as a steady broker's come."""
        if peer in self.latest and self.latest[peer].sender.incarnation == self.incarnation:
            self.report_columns(peer, self.latest[peer])

    def report_columns(self, peer: str, latest: Report) -> None:
        self.sequence += 1
        for row in latest.rows:
            self.told[peer].pop(GroupKey(row.group, row.kind), None)
        if latest.full:
            self.told[peer] = {}
        self.told[peer] |= {
            GroupKey(row.group, row.kind): row for row in latest.rows if not row.is_idle
        }
        self.latest[peer] = replace(latest, sequence=self.sequence)
        self.live(MessageReceived(Nanos(self.now), self.latest[peer]))

    def goodbye(self, peer: str) -> None:
        self.live(MessageReceived(Nanos(self.now), Goodbye(Sender(peer, self.incarnation))))
        self.told = {name: ({} if name == peer else told) for name, told in self.told.items()}
        self.latest.clear()
        # Each of them starts again, for who said goodbye under a number is not heard under it.
        self.incarnation += 1
        for name in PEERS:
            self.live(MessageReceived(Nanos(self.now), Goodbye(Sender(name, self.incarnation - 1))))
            self.live(MessageReceived(Nanos(self.now), Hello(Sender(name, self.incarnation))))
            self.told[name] = {}

    def policies(self, names: set[str]) -> None:
        groups = {name: Group(name, Limit(Rates(100_000), Rates(50_000))) for name in names}
        self.snapshot = PolicySnapshot(groups)
        self.live(PoliciesChanged(Nanos(self.now), self.snapshot))

    def ask(self, group: str, count: int) -> None:
        request = Request(messages=count, group=group)
        try:
            self.broker.limiter.acquire(request, Nanos(self.now))
        except UnknownGroup:
            assert group not in self.snapshot.groups

    def wait(self, milliseconds: int) -> None:
        until = self.now + milliseconds * NS_PER_MS
        while (due := self.broker.wake_at) is not None and due <= until:
            self.now = max(self.now, due)
            self.live(Woken(Nanos(self.now)))
        self.now = until

    # The laws.

    def check(self) -> None:
        broker, index = self.broker, self.broker.index
        broker.validate()
        for peer in PEERS:
            held = dict(broker.usage.rows_of(peer))
            model = self.told[peer]
            assert held.items() <= model.items()
            assert broker.usage.is_partial(peer) or held == model
            unknown = [key for key in held if index.is_unknown[index.find(key) or 0]]
            assert len(unknown) <= 4
        given = {key: index.find(key) for key in (GroupKey(g, k) for g in GROUPS for k in Kind)}
        taken = [slot for slot in given.values() if slot is not None]
        assert len(set(taken)) == len(taken) == index.given <= 8
        assert all(index.keys[slot] == key for key, slot in given.items() if slot is not None)
        self.check_shares()

    def check_shares(self) -> None:
        """Shares are those of the same rows in a map that never freed anything."""
        fresh = UsageMap()
        for name in [*PEERS, ME.broker]:
            told = [
                UsageRow(key.group, key.kind, row.topics, row.admitted, row.wanted)
                for key, row in self.broker.usage.rows_of(name).items()
            ]
            fresh.apply(Report(Sender(name, 1), 1, NS_PER_S, UsageColumns.of(*told), full=True))
            assert fresh.hash_of(name) == self.broker.usage.hash_of(name)
        for state in self.broker.limiter.states():
            assert self.broker.usage.rows(state.key) == fresh.rows(state.key)
            quota = self.broker.sharing.policies.quota(state.key)
            assert quota == self.snapshot.groups[state.key.group].rates(state.key.kind)
            if self.broker.sharing.slot_of(state.key) < 0:
                # Never the whole quota.
                assert (state.share.messages or 0) * len(self.broker.sharing.brokers) <= (
                    quota.messages or 0
                )

    def check_quiet(self) -> None:
        """Once everything was looked at: what has a slot is used."""
        # What is in use, what peers have told, and what they were told of us.
        for _ in range(3):
            self.wait(ROUND_MS)
        index, broker = self.broker.index, self.broker
        used = {state.key for state in broker.limiter.states()}
        for name in [*PEERS, ME.broker]:
            used |= broker.usage.rows_of(name).keys()
        used |= {GroupKey(row.group, row.kind) for row in advertised(broker.rounds)}
        given = {
            key
            for key in (GroupKey(g, k) for g in GROUPS for k in Kind)
            if index.find(key) is not None
        }
        assert given <= used
        assert index.unknown == sum(key.group not in self.snapshot.groups for key in given)


@given(happenings)
def test_a_slot_that_was_freed_keeps_nothing_of_the_group_that_had_it(
    script: list[tuple[object, ...]],
) -> None:
    life = Life()
    life.wait(2 * ROUND_MS + 200)
    for happening in script:
        match happening:
            case ("report", str(peer), list(told), bool(full)):
                life.report(peer, told, full=full)
            case ("again", str(peer)):
                life.again(peer)
            case ("goodbye", str(peer)):
                life.goodbye(peer)
            case ("policies", set(names)):
                life.policies(names)
            case ("ask", str(group), int(count)):
                life.ask(group, count)
            case ("wait", int(milliseconds)):
                life.wait(milliseconds)
            case _:
                raise AssertionError(happening)
        life.check()
    life.check_quiet()
