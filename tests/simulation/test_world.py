"""The simulator itself: the same seed is the same run, and the network does what it is told.

Not covered: what the brokers do in it, which is what every other file here is about.
"""

from collections import Counter

import pytest

from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Hello, Message, Speaker
from rgd.core.units import NS_PER_MS, NS_PER_S
from sim.load import Load
from sim.world import Network, World
from tests.simulation.worlds import SETTINGS, Cluster, gold_book

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


def test_a_seed_reproduces_a_run_to_the_last_event() -> None:
    assert story(5) == story(5)
    assert story(5) != story(6)


def heard(network: Network, count: int = 400) -> tuple[Counter[str], list[int]]:
    """How often each of two members hears so many hellos of the first, and the delays in ms."""
    world = World(seed=1, network=network)
    members = [
        world.add(type(SETTINGS)(Speaker(name, place)), gold_book(QUOTA))
        for place, name in enumerate(("a", "b"))
    ]
    arrivals: Counter[str] = Counter()
    delays: list[int] = []

    def note(name: str, message: Message) -> None:
        arrivals[name] += 1
        delays.append(world.now // NS_PER_MS)

    world._deliver = note  # type: ignore[method-assign]
    for _ in range(count):
        world._broadcast(members[0], Hello(Speaker("a", 0)))
    world.run_until(NS_PER_S)
    return arrivals, delays


def test_everybody_hears_a_message_its_speaker_too() -> None:
    arrivals, delays = heard(Network())
    assert arrivals == {"a": 400, "b": 400}
    assert (min(delays), max(delays)) == (1, 19)


def test_some_messages_are_lost_and_some_come_twice_for_each_by_itself() -> None:
    assert not heard(Network(loss=1.0))[0]
    assert heard(Network(duplication=1.0))[0] == {"a": 800, "b": 800}
    lossy, _ = heard(Network(loss=0.25))
    assert lossy["a"] != lossy["b"]
    assert sum(lossy.values()) == pytest.approx(600, rel=0.05)


def test_who_is_cut_off_from_another_hears_nothing_of_it() -> None:
    assert heard(Network(cut={("a", "b")}))[0] == {"a": 400}
    assert heard(Network(cut={("b", "a")}))[0] == {"a": 400, "b": 400}


def test_a_load_asks_at_its_rate_however_often_it_is_set() -> None:
    cluster = Cluster([10], quota=QUOTA)
    (load,) = cluster.loads
    for _ in range(5):
        load.set_rate(0)
        load.set_rate(10)
    cluster.run_s(2)
    assert load.wanted == 20


def test_a_refused_request_comes_back_as_often_as_it_may() -> None:
    cluster = Cluster([], quota=QUOTA)
    cluster.set_book(gold_book(QUOTA, blocked=True))
    member = cluster.add(0)
    load = Load(cluster.world, member, cluster.loads[0].request, 1, retries=3).start()
    cluster.run_s(1)
    load.set_rate(0)
    cluster.run_s(9)
    state = next(member.broker.limiter.states())
    assert (load.wanted, sum(state.refused.values())) == (1, 4)


def test_a_request_that_is_too_large_is_a_mistake_of_the_test() -> None:
    cluster = Cluster([0], quota=QUOTA)
    with pytest.raises(TypeError, match="TooLarge"):
        cluster.world.acquire(cluster.members[0], Request(messages=10**6, group="gold"))
