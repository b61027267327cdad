"""The simulator itself: the same seed is the same run, and the network does what it is told.

Not covered: what the brokers do in it, which is what every other file here is about.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

from rgd.core.broker.effects import Effect
from rgd.core.broker.events import Event, Woken
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Hello, Message, Sender
from rgd.core.units import NS_PER_MS, NS_PER_S, Nanos
from sim.clock import Clock
from sim.load import Load
from sim.member import CoreBrain
from sim.network import Network
from sim.world import World
from tests.simulation.worlds import SETTINGS, Cluster, gold_snapshot

QUOTA = 300.0


def story(seed: int) -> list[object]:
    """Everything that was granted, logged and raised in a run with a lot of chance in it."""
    network = Network(delay_max_ns=90 * NS_PER_MS, loss=0.1, duplication=0.1)
    cluster = Cluster([QUOTA, 30, 90], quota=QUOTA, seed=seed, network=network)
    cluster.run_s(3)
    cluster.crash(1)
    cluster.add(60)
    cluster.run_s(4)
    return [
        *(load.grants for load in cluster.loads),
        *((member.records, member.alarms) for member in cluster.members),
    ]


@pytest.mark.slow
def test_a_seed_reproduces_a_run_to_the_last_event() -> None:
    assert story(5) == story(5)
    assert story(5) != story(6)


def heard(network: Network, count: int = 400) -> tuple[Counter[str], list[int]]:
    """How often each of two members hears so many hellos of the first, and the delays in ms."""
    world = World(seed=1, network=network)
    members = [
        world.add(type(SETTINGS)(Sender(name, place)), gold_snapshot(QUOTA))
        for place, name in enumerate(("a", "b"))
    ]
    arrivals: Counter[str] = Counter()
    delays: list[int] = []

    def note(name: str, message: Message) -> None:
        arrivals[name] += 1
        delays.append(world.now // NS_PER_MS)

    world.deliver = note  # type: ignore[method-assign]
    for _ in range(count):
        world.broadcast(members[0].name, Hello(Sender("a", 0)))
    world.run_until(NS_PER_S)
    return arrivals, delays


def test_everybody_receives_a_message_its_sender_too() -> None:
    arrivals, delays = heard(Network())
    assert arrivals == {"a": 400, "b": 400}
    assert (min(delays), max(delays)) == (1, 19)


def test_some_messages_are_lost_and_some_come_twice_for_each_by_itself() -> None:
    assert not heard(Network(loss=1.0))[0]
    assert heard(Network(duplication=1.0))[0] == {"a": 800, "b": 800}
    lossy, _ = heard(Network(loss=0.25))
    assert lossy["a"] != lossy["b"]
    assert sum(lossy.values()) == pytest.approx(600, rel=0.05)


def test_who_is_cut_off_from_another_receives_nothing_of_it() -> None:
    assert heard(Network(cut={("a", "b")}))[0] == {"a": 400}
    assert heard(Network(cut={("b", "a")}))[0] == {"a": 400, "b": 400}


def test_a_refused_request_comes_back_as_often_as_it_may() -> None:
    cluster = Cluster([], quota=QUOTA)
    cluster.set_policies(gold_snapshot(QUOTA, blocked=True))
    member = cluster.add(0)
    load = Load(cluster.world, member, cluster.loads[0].request, 1, retries=3).start()
    cluster.run_s(1)
    load.set_rate(0)
    cluster.run_s(9)
    state = next(member.broker.limiter.states())
    assert (load.wanted, sum(dict(state.refused()).values())) == (1, 4)


def test_a_request_that_is_too_large_is_a_mistake_of_the_test() -> None:
    cluster = Cluster([0], quota=QUOTA)
    with pytest.raises(TypeError, match="TooLarge"):
        cluster.world.acquire(cluster.members[0], Request(messages=10**6, group="gold"))


def test_where_everybody_is_as_far_one_delivery_is_as_good_as_one_each() -> None:
    network = Network(delay_min_ns=7 * NS_PER_MS, delay_max_ns=7 * NS_PER_MS)
    together = heard(network)
    network.slow_ns = {"nobody": 1}
    assert heard(network) == together
    assert set(together[1]) == {7}


def test_what_reaches_a_frozen_member_happens_when_it_thaws_and_so_does_its_round() -> None:
    cluster = Cluster([90, 90], quota=QUOTA)
    cluster.run_s(4.5)
    member = cluster.members[1]
    told: list[float] = []
    cluster.world.watchers.append(lambda one: told.append(cluster.now_s) if one is member else None)
    cluster.world.freeze(member, 2 * NS_PER_S)
    cluster.run_s(3)
    # A report of each of two rounds, and the end of its own, in one moment.
    assert told.count(6.5) >= 3
    assert min(told) == 6.5
    cluster.run_s(3)
    assert cluster.agrees()


class Undecided(CoreBrain):
    """Asks for a wake after a second, and then for a later one instead."""

    wake_at: Nanos | None = Nanos(NS_PER_S)

    def handle(self, event: Event) -> Sequence[Effect]:
        if isinstance(event, Woken):
            assert self.wake_at == event.now
            self.wake_at = None
        return ()


def test_a_wake_that_was_put_off_comes_at_its_new_time() -> None:
    world = World(make_brain=Undecided)
    member = world.add(SETTINGS, gold_snapshot(QUOTA))
    world.start(member)
    member.brain.wake_at = Nanos(2 * NS_PER_S)  # type: ignore[misc]
    world.run_until(3 * NS_PER_S)
    assert member.brain.wake_at is None


@pytest.mark.slow
def test_a_member_whose_clock_is_slow_has_longer_rounds() -> None:
    world = World(seed=1)
    settings = type(SETTINGS)(Sender("a", 0))
    member = world.add(
        settings, gold_snapshot(QUOTA), clock=Clock(offset_ns=-5, drift_ppb=-1_000_000)
    )
    Load(world, member, Request(group="gold"), 100).start()
    world.start(member)
    world.run_until(100 * NS_PER_S)
    gaps = {
        later - earlier
        for earlier, later in zip(member.recorded_at[5:], member.recorded_at[6:], strict=False)
    }
    assert all(gap == pytest.approx(1.001001 * NS_PER_S, abs=2) for gap in gaps)
    assert gaps
