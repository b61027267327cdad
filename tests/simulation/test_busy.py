"""Daemons whose work takes longer than a round stay members, in each other's view and their own.

Work is counted: each wake and each message is one piece of it, and takes a fixed time of the world. Not covered: how
long a piece takes on a machine (bench/rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.mode import Mode
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, to_milli
from sim.member import Member
from sim.world import World
from tests.simulation import worlds

pytestmark = pytest.mark.slow

#: The end of a round takes so many pieces: with the time of a piece, more than a peer's patience.
SLICES = 24
SLICE_NS = 200 * NS_PER_MS
PIECE = 64
GROUPS = [f"group-{number}" for number in range(SLICES * PIECE)]
SETTINGS = replace(worlds.SETTINGS, bounds=Bounds(rounds=replace(BOUNDS.rounds, piece_rows=PIECE)))
QUIET_S, BUSY_S = 5, 25

#: More than the expiry of a silent peer.
assert SETTINGS.expiry_rounds * SETTINGS.round_ns < SLICES * SLICE_NS


def ask_every_second(world: World, member: Member, second: int) -> None:
    for group in GROUPS:
        world.acquire(member, Request(group=group))
    if second < BUSY_S:
        world.at((second + 1) * NS_PER_S, ask_every_second, world, member, second + 1)


def test_two_daemons_busy_beyond_a_round_do_not_expire_each_other() -> None:
    world = World(seed=1)
    limit = Limit(Rates(to_milli(1000.0)))
    snapshot = PolicySnapshot({name: Group(name, limit) for name in GROUPS})
    members = []
    for number in range(2):
        sender = Sender(f"broker-{number}", world.dice.getrandbits(62))
        members.append(world.add(replace(SETTINGS, sender=sender), snapshot))
        world.start(members[-1])
    world.run_until(QUIET_S * NS_PER_S)
    busiest = 0

    def check(_member: Member) -> None:
        nonlocal busiest
        for member in members:
            busiest = max(busiest, member.frozen_until - world.now)
            assert member.broker.sharing.brokers == ["broker-0", "broker-1"]
            assert member.broker.mode is Mode.LIVE

    check(members[0])
    before = [len(member.records) for member in members]
    world.watchers.append(check)
    world.slice_ns = SLICE_NS
    for member in members:
        ask_every_second(world, member, QUIET_S)
    world.run_until(BUSY_S * NS_PER_S)
    # They were busy for more than a round at a time, and still ended rounds.
    ended = [len(member.records) - before[at] for at, member in enumerate(members)]
    assert busiest == SLICE_NS
    assert all(1 <= count <= (BUSY_S - QUIET_S) / 2 for count in ended), ended
