"""Worlds that the simulation tests share: one group, some members, load on each, and laws to watch.

A `Cluster` is members with a load each; what happens to it has a method each. The laws are functions
over it: `watch_conservation` at every event, `assert_no_overshoot` over what was granted. Moments
are seconds since the world began; rates are messages a second.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Attachments, Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_S, Kind, to_milli
from sim.load import Load
from sim.member import Member
from sim.network import Network
from sim.world import World

GOLD = GroupKey("gold", Kind.PUBLISH)
SETTINGS = BrokerSettings(Sender("", 0))
NAMESPACE = "acme/orders"
REQUEST = Request(namespace=NAMESPACE, topic=f"persistent://{NAMESPACE}/eu")


def gold_snapshot(quota: float, *, blocked: bool = False) -> PolicySnapshot:
    """One group of so many messages a second, attached to the namespace acme/orders."""
    group = Group("gold", Limit(Rates(to_milli(quota))), blocked=blocked)
    return PolicySnapshot({"gold": group}, Attachments(namespaces={NAMESPACE: "gold"}))


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
    ) -> None:
        self.world = World(seed=seed, network=network)
        self.settings = settings or SETTINGS
        self.snapshot = gold_snapshot(quota)
        self.members: list[Member] = []
        self.loads: list[Load] = []
        for rate in rates:
            self.add(rate)

    @property
    def now_s(self) -> float:
        """The moment."""
        return self.world.now / NS_PER_S

    @property
    def live(self) -> list[Member]:
        """The members that are up."""
        return [member for member in self.members if member.is_up and member.halted is None]

    # What may happen.

    def add(
        self,
        rate: float,
        *,
        name: str | None = None,
        retries: int = 0,
        stored_peers: frozenset[str] = frozenset(),
        address: str | None = None,
    ) -> Member:
        """Make, start and load one more member.

        Where the name is taken it is a restart; with an address of its own it is a second one.
        """
        sender = Sender(name or f"broker-{len(self.members)}", self.world.dice.getrandbits(62))
        settings = replace(self.settings, sender=sender, stored_peers=stored_peers)
        member = self.world.add(settings, self.snapshot, address=address)
        self.members.append(member)
        self.world.start(member)
        self.loads.append(Load(self.world, member, REQUEST, rate, retries=retries).start())
        return member

    def crash(self, place: int) -> None:
        """Stop a member and its callers without a word."""
        self.loads[place].set_rate(0)
        self.world.crash(self.members[place])

    def leave(self, place: int) -> None:
        """Stop a member in order, its callers first."""
        self.loads[place].set_rate(0)
        self.world.stop(self.members[place])

    def cut_off(self, *places: int) -> None:
        """Take the exchange away from members: nobody hears them, nor they anybody, nor themselves."""
        for place in places:
            name = self.members[place].name
            for other in self.world.members:
                self.world.network.cut |= {(name, other), (other, name)}

    def heal(self) -> None:
        """Give everybody the exchange back."""
        self.world.network.cut.clear()

    def set_policies(self, snapshot: PolicySnapshot) -> None:
        """Put policies in force everywhere, newcomers included."""
        self.snapshot = snapshot
        self.world.set_policies(snapshot)

    def run_s(self, seconds: float) -> None:
        """Let time pass, and every member check itself at the end."""
        self.world.run_until(round(self.world.now + seconds * NS_PER_S))
        for member in self.live:
            member.broker.validate()

    # What can be seen.

    def modes(self) -> set[Mode]:
        """What the live members believe."""
        return {member.broker.mode for member in self.live}

    def mode_of(self, place: int) -> Mode:
        """What one member believes."""
        return self.members[place].broker.mode

    def admitted_s(self, begin_s: float, end_s: float) -> list[float]:
        """Rates that each load saw admitted between two moments, per second."""
        begin, end = round(begin_s * NS_PER_S), round(end_s * NS_PER_S)
        return [load.admitted_between(begin, end) / (end_s - begin_s) for load in self.loads]

    def shares(self, key: GroupKey = GOLD) -> list[float]:
        """Each member's share in force, units per second; -1 where it is unlimited or not in use."""
        return [share_of(member, key) for member in self.members]

    def agrees(self, key: GroupKey = GOLD) -> bool:
        """Whether all live members believe the same rates of the same brokers, and the same snapshot."""
        views = [_view(member, key) for member in self.live]
        return self.modes() == {Mode.LIVE} and all(view == views[0] for view in views)


def _view(member: Member, key: GroupKey) -> object:
    broker = member.broker
    rates = {name: (row.wanted, row.admitted) for name, row in broker.usage.rows(key).items()}
    return broker.sharing.brokers, rates, broker.sharing.snapshot


def share_of(member: Member, key: GroupKey = GOLD) -> float:
    """One member's share in force; -1 where it is unlimited or not in use."""
    state = member.broker.limiter.state(key)
    rate = None if state is None else state.share.messages
    return -1.0 if rate is None else rate / MILLI


def watch_conservation(cluster: Cluster, key: GroupKey = GOLD) -> list[float]:
    """Check at every event that members that agree never hand out more than the quota.

    Returns:
        The sum of the shares in force of all that are up, by the quota, after each event: what is
        handed out while they disagree, for the caller to judge.
    """
    sums: list[float] = []

    def check(_member: Member) -> None:
        members = cluster.live
        quota = members[0].broker.sharing.policies.quota(key).messages if members else None
        if quota is None:
            return
        total = sum(max(0.0, share_of(member, key)) for member in members)
        sums.append(total / max(quota / MILLI, 1e-9))
        if cluster.agrees(key):
            assert total <= quota / MILLI + 1e-6

    cluster.world.watchers.append(check)
    return sums


def assert_no_overshoot(
    cluster: Cluster, quota: float, begin_s: float, end_s: float, *, excess: float = 0.02
) -> None:
    """Check every second between two moments: no more than the quota, the depth and a request each."""
    begin, end = round(begin_s * NS_PER_S), round(end_s * NS_PER_S)
    grants = sorted(grant for load in cluster.loads for grant in load.grants)
    moments = [moment for moment, _ in grants]
    totals = [0, *accumulate(count for _, count in grants)]
    depth = quota * cluster.settings.burst_ns / NS_PER_S
    most = quota * (1 + excess) + depth + len(cluster.loads)
    for place in range(bisect_left(moments, begin), bisect_left(moments, end - NS_PER_S)):
        after = bisect_left(moments, moments[place] + NS_PER_S)
        assert totals[after] - totals[place] <= most
