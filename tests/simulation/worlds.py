"""Worlds that the simulation tests share: one group, some members, load on each."""

from collections.abc import Sequence
from dataclasses import replace

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import Speaker
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.units import NS_PER_S, Kind, to_milli
from sim.load import Load
from sim.world import Member, Network, World

GOLD = GroupKey("gold", Kind.PUBLISH)
REQUEST = Request(namespace="acme/orders", topic="persistent://acme/orders/eu")


def gold_book(quota: float) -> PolicyBook:
    """One group of so many messages a second, attached to the namespace acme/orders."""
    group = Group("gold", Limit(Rates(to_milli(quota))))
    return PolicyBook({"gold": group}, Attachments(namespaces={"acme/orders": "gold"}))


class Cluster:
    """Members with one load each, on one quota."""

    def __init__(
        self,
        rates: Sequence[float],
        *,
        quota: float,
        seed: int = 0,
        settings: BrokerSettings | None = None,
        network: Network | None = None,
        retries: int = 0,
    ) -> None:
        self.world = World(seed=seed, network=network)
        self.settings = settings or BrokerSettings(Speaker("", 0))
        self.book = gold_book(quota)
        self.members: list[Member] = []
        self.loads: list[Load] = []
        for rate in rates:
            self.add(rate, retries=retries)

    def add(self, rate: float, *, name: str | None = None, retries: int = 0) -> Member:
        """Make, start and load one more member (a restart, if the name is taken)."""
        speaker = Speaker(name or f"broker-{len(self.members)}", self.world.dice.getrandbits(62))
        member = self.world.add(replace(self.settings, speaker=speaker), self.book)
        self.members.append(member)
        self.world.start(member)
        self.loads.append(Load(self.world, member, REQUEST, rate, retries=retries).start())
        return member

    def run_s(self, seconds: float) -> None:
        """Let time pass, and every member check itself at the end."""
        self.world.run_until(round(self.world.now + seconds * NS_PER_S))
        for member in self.members:
            if member.is_up:
                member.broker.validate()

    def admitted_s(self, begin_s: float, end_s: float) -> list[float]:
        """Rates that each load saw admitted between two moments, per second."""
        begin, end = round(begin_s * NS_PER_S), round(end_s * NS_PER_S)
        return [load.admitted_between(begin, end) / (end_s - begin_s) for load in self.loads]

    def shares(self) -> list[float]:
        """Each member's share in force, units per second."""
        shares = []
        for member in self.members:
            state = member.broker.limiter.state(GOLD)
            rate = None if state is None else state.share.messages
            shares.append(-1.0 if rate is None else rate / 1000)
        return shares
