"""Namespaces, topics and tenants move between groups under load: each request is counted once.

A real broker, policies as records, requests between the changes, rounds in slices: what the groups'
its counters counted is what the callers were told, in exactly the groups that the newest snapshot names.
Not covered: what a request is granted (test_limiter.py), several brokers (tests/simulation).
"""

import random
from collections import Counter
from typing import Final

import pytest

from rgd.core.bounds import Bounds, SharingBounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, GroupKey, Limit, LocalLimit, Rates, TopicSplit
from rgd.core.policies.records import PolicyRecords, Value
from rgd.core.units import NS_PER_MS, Dimension, Kind, Nanos, Pair, to_milli

pytestmark = pytest.mark.slow

GROUPS: Final = ("gold", "silver", "trial")
NAMESPACES: Final = ("acme/orders", "acme/bills", "beta/logs")
TOPICS: Final = tuple(
    f"persistent://{namespace}/{name}"
    for namespace in NAMESPACES
    for name in ("a", "b-partition-3")
)
PLACES: Final = (
    "tenant:acme",
    "tenant:beta",
    *(f"namespace:{namespace}" for namespace in NAMESPACES),
    *(f"topic:{topic}" for topic in TOPICS),
    "topic:persistent://acme/orders/b",
)
MOVES: Final = 1_000


class House:
    """A broker under load; what was told to callers and what its counters said."""

    def __init__(self, seed: int, changes_max: int) -> None:
        self.dice = random.Random(seed)
        self.is_told_late = changes_max == 0
        self.now = 0
        self.records = PolicyRecords()
        bounds = Bounds(sharing=SharingBounds(changes_max=changes_max))
        self.broker = Broker(BrokerSettings(Sender("b1", 1), bounds=bounds), Nanos(0))
        #: What each life of a group told its callers; a life ends when it is deleted.
        self.admitted: Counter[GroupKey] = Counter()
        self.refused: Counter[GroupKey] = Counter()
        self.asked = self.of_groups = 0
        for name in GROUPS:
            self.write(f"group:{name}", self.group(name))
        self.broker.handle(Started(Nanos(0)))

    def group(self, name: str) -> Group:
        rate = self.dice.choice([None, 20, 2_000, 100_000])
        quota = Rates(None if rate is None else to_milli(rate), self.dice.choice([None, 10**8]))
        split = self.dice.choice([None, TopicSplit.EVEN, TopicSplit.PROPORTIONAL])
        is_blocked = self.dice.random() < 0.2
        return Group(name, Limit(quota, quota), blocked=is_blocked, topic_split=split)

    def write(self, key: str, value: Value) -> None:
        """Change one policy, as an admin does."""
        self.records.put(self.records.next(key, value, "b1"))
        snapshot = self.records.snapshot()
        self.broker.handle(PoliciesChanged(Nanos(self.now), snapshot))
        for counts in (self.admitted, self.refused):
            for key_of_group in [one for one in counts if one.group not in snapshot.groups]:
                del counts[key_of_group]

    def change(self) -> None:
        """One of the changes that people make; most of them are moves."""
        dice = self.dice
        chance = dice.random()
        if chance < 0.75:
            self.write(dice.choice(PLACES), dice.choice([*GROUPS, *GROUPS, None]))
        elif chance < 0.9:
            name = dice.choice(GROUPS)
            self.write(f"group:{name}", self.group(name))
        elif chance < 0.95:
            name = dice.choice(GROUPS)
            self.write(f"group:{name}", None)
            if dice.random() < 0.5:
                self.ask()
            while self.is_told_late and self.broker.sharing.has_marks:
                # Where nobody is told at once, one that is back before it was missed goes on.
                self.broker.handle(Woken(Nanos(self.now)))
            self.write(f"group:{name}", self.group(name))
        else:
            limit = LocalLimit(Rates(to_milli(dice.choice([5, 5_000]))))
            self.write(f"limit:namespace:{dice.choice(NAMESPACES)}", dice.choice([limit, None]))

    def ask(self) -> None:
        dice = self.dice
        topic = dice.choice(TOPICS)
        namespace = "/".join(topic.split("/")[2:4])
        request = Request(
            kind=dice.choice([*Kind]),
            messages=dice.randint(1, 5),
            bytes=dice.randint(0, 50),
            namespace=namespace,
            topic=topic,
            subscription=dice.choice([None, "s"]),
            partial=dice.random() < 0.3,
        )
        groups = self.records.snapshot().groups_of(namespace, topic)
        answer = self.broker.limiter.acquire(request, Nanos(self.now))
        assert isinstance(answer, Decision)
        self.asked += 1
        self.of_groups += len(groups)
        for group in groups:
            key = GroupKey(group.name, request.kind)
            if group.blocked:
                assert not answer.granted, f"{group} is blocked"
            self.admitted[key] += answer.messages if answer.granted else 0
            self.refused[key] += request.messages - (answer.messages if answer.granted else 0)

    def pass_time(self) -> None:
        self.now += self.dice.choice([0, 100_000, 3 * NS_PER_MS, 60 * NS_PER_MS])
        for _ in range(self.dice.randint(0, 3)):
            wake_at = self.broker.wake_at
            if wake_at is not None and wake_at <= self.now:
                self.broker.handle(Woken(Nanos(self.now)))

    def check(self) -> None:
        """What each group counted in this life of it is what its callers were told."""
        states = {state.key: state for state in self.broker.limiter.states()}
        for key in {*states, *self.admitted, *self.refused}:
            state = states.get(key)
            totals = Pair() if state is None else state.counters.admitted
            assert totals.messages == self.admitted[key], key
            refused = (
                0
                if state is None
                else sum(
                    count
                    for (_, dimension), count in state.refused()
                    if dimension is Dimension.MESSAGES
                )
            )
            assert refused == self.refused[key], key
        self.broker.validate()


@pytest.mark.parametrize("changes_max", [32, 0], ids=["few change", "all may have changed"])
@pytest.mark.parametrize("seed", range(3))
def test_no_request_is_lost_or_counted_twice_in_a_thousand_changes(
    seed: int, changes_max: int
) -> None:
    house = House(seed, changes_max)
    for _ in range(MOVES):
        for _ in range(house.dice.randint(0, 8)):
            house.ask()
            house.pass_time()
        house.change()
        house.check()
    # What was checked is not empty.
    assert house.asked > 3 * MOVES
    assert house.of_groups > house.asked
