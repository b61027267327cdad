"""A scenario come to life: members, callers, faults and the rounds of the world.

Law: everything that happens is on the world's agenda before it runs, or follows from it; so a
scenario and a seed are one run. Each kind of chance has dice of its own, so that another policy or
network meets the same load.

What it leaves behind is a `sim.recording`; what must hold all the while is in `sim.checkers`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, GroupKey, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Kind
from sim.arrivals import Arrivals, PoissonArrivals, RegularArrivals
from sim.caller import (
    Caller,
    HoldingCaller,
    LeasingCaller,
    RetryingCaller,
    RoundCount,
    WaitingCaller,
)
from sim.clock import Clock
from sim.fault import Deed, Fault
from sim.member import Member
from sim.network import Network
from sim.recording import Recording
from sim.scenario import CallerKind, Demand, Scenario
from sim.segments import segments_of
from sim.world import BrainMaker, World

#: Called at each boundary, after it was noted.
OnBoundary = Callable[[int], None]


class Cluster:
    """One run of one scenario."""

    def __init__(self, scenario: Scenario, *, seed: int, make_brain: BrainMaker) -> None:
        self.scenario = scenario
        ground = scenario.ground(seed)
        self.demand: Demand = scenario.workload(ground)
        faults = scenario.faults(ground)
        self.faults = tuple(one for one in faults if one.deed is not Deed.CLOCK)
        #: Wall clocks that are wrong: no brain is ever told the wall clock, so only logs show it.
        self.clock_faults = tuple(one for one in faults if one.deed is Deed.CLOCK)
        #: When true demand or the members change.
        self.steps = [*self.demand.steps_ns, *(fault.at_ns for fault in self.faults)]
        self._dice = np.random.default_rng([seed, 2])
        self.world = World(seed=seed, network=_network_of(scenario), make_brain=make_brain)
        self.settings = BrokerSettings(
            Sender("", 0),
            round_ns=scenario.round_ns,
            burst_ns=scenario.burst_ms * NS_PER_MS,
            shards=scenario.shards,
            bounds=scenario.core_bounds,
        )
        self.names = [f"broker-{place:03}" for place in range(scenario.daemons)]
        #: By place: its broker's name, which a duplicate has from another place.
        self.brokers = list(self.names)
        for fault in self.faults:
            if fault.deed is Deed.DUPLICATE:
                for place in fault.places:
                    self.brokers[place] = self.names[fault.of]
        self.keys = [GroupKey(f"group-{g:03}", Kind.PUBLISH) for g in range(scenario.groups)]
        self.quota = (
            scenario.quota_per_daemon * scenario.daemons,
            scenario.bytes_per_daemon * scenario.daemons,
        )
        self.snapshot = _snapshot_of(self.keys, self.quota)
        #: The member at each place, None before it first starts; by place.
        self.members: list[Member | None] = [None] * scenario.daemons
        #: Members that are no more, for their logs.
        self.gone: list[Member] = []
        self.rounds = RoundCount(scenario.rounds_all, scenario.round_ns)
        self.on_boundary: list[OnBoundary] = []
        #: Faults in force.
        self.acting: list[Fault] = []
        #: By group, by place.
        self.callers: list[list[Caller]] = [[] for _ in self.keys]
        boundaries = scenario.rounds_all + 1
        shape = (boundaries, scenario.groups, scenario.daemons, 2)
        self.shares = np.full(shape, np.nan)
        self.tokens = np.zeros((boundaries, scenario.groups, 2))
        self.is_up = np.zeros((boundaries, scenario.daemons), dtype=np.bool_)
        # Boundaries come first, so that they see what was before anything else of their moment.
        for boundary in range(boundaries):
            self.world.at(boundary * scenario.round_ns, self._note, boundary)
        quiet_ns = scenario.quiet_rounds * scenario.round_ns
        if quiet_ns:
            self.world.at(ground.end_ns - quiet_ns, self._calm)
        self._put_faults()
        self._put_members(seed)

    @property
    def live(self) -> list[Member]:
        """The members that take part just now."""
        return [member for member in self.members if member is not None and member.is_live]

    def run(self, on_round: Callable[[int], None] | None = None) -> Recording:
        """Let all of it happen; tells each round that is over."""
        for number in range(1, self.scenario.rounds_all + 1):
            self.world.run_until(number * self.scenario.round_ns)
            if on_round is not None:
                on_round(number)
        return self._record()

    # How it is made.

    def _put_members(self, seed: int) -> None:
        scenario = self.scenario
        late = {
            place for fault in self.faults if fault.deed.is_late_start for place in fault.places
        }
        spread_ns = int(scenario.stagger * scenario.round_ns)
        for place in range(scenario.daemons):
            moment = int(self._dice.uniform(0, 1) * spread_ns)
            if place not in late:
                self.world.at(moment, self._start, place)
        # One member stands in until the place is taken, so that callers can be made now.
        waiting = Member("nobody", self.world.make_brain(self.settings, self.world.now), Clock())
        for group, key in enumerate(self.keys):
            for place in range(scenario.daemons):
                caller = _caller_of(scenario, self.world, waiting, key.group, self.rounds)
                self.callers[group].append(caller)
                caller.start(self._arrivals_of(group, place, seed))

    def _arrivals_of(self, group: int, place: int, seed: int) -> Arrivals:
        schedule = self.demand.schedules[group][place]
        if self.scenario.is_poisson:
            return PoissonArrivals(schedule, np.random.default_rng([seed, 3, group, place]))
        gap_ns = self.scenario.gap_ns
        phase_ns = int(self._dice.uniform(0, 1) * gap_ns)
        return RegularArrivals(schedule, gap_ns=gap_ns, phase_ns=phase_ns)

    def _put_faults(self) -> None:
        for fault in self.faults:
            self.world.at(fault.at_ns, self._begin, fault)
            if fault.end_ns is not None:
                self.world.at(fault.end_ns, self._end, fault)

    # What happens in it.

    def _start(self, place: int) -> None:
        former = self.members[place]
        if former is not None:
            self.gone.append(former)
        settings = replace(
            self.settings,
            sender=Sender(self.brokers[place], self.world.dice.getrandbits(62)),
            stored_peers=frozenset() if former is None else frozenset(former.remembered),
        )
        clock = self._clock() if former is None else former.clock
        member = self.members[place] = self.world.add(
            settings, self.snapshot, clock=clock, address=self.names[place]
        )
        for row in self.callers:
            row[place].member = member
        self.world.start(member)

    def _clock(self) -> Clock:
        skew_s, drift_ppm = self.scenario.skew_s, self.scenario.drift_ppm
        return Clock(
            # A monotonic clock counts from when its machine was started: never below 0.
            offset_ns=int(self._dice.uniform(0, 1) * skew_s * NS_PER_S),
            drift_ppb=int(self._dice.uniform(-1, 1) * drift_ppm * 1000),
        )

    def _begin(self, fault: Fault) -> None:
        self.acting.append(fault)
        for place in fault.places:
            member = self.members[place]
            match fault.deed:
                case Deed.JOIN | Deed.DUPLICATE:
                    self._start(place)
                case Deed.LEAVE if member is not None:
                    self.world.stop(member)
                case Deed.CRASH if member is not None:
                    self.world.crash(member)
                case Deed.PLANE if member is not None and member.is_live:
                    self.world.lose_plane(member)
                case Deed.FREEZE if member is not None and fault.end_ns is not None:
                    self.world.freeze(member, fault.end_ns - self.world.now)
                case Deed.SLOW:
                    self.world.network.slow_ns[self.names[place]] = fault.amount_ns
                case _:
                    pass
        self._cut()

    def _end(self, fault: Fault) -> None:
        self.acting.remove(fault)
        for place in fault.places:
            if fault.deed in (Deed.LEAVE, Deed.CRASH):
                self._start(place)
            elif fault.deed is Deed.PLANE and (member := self.members[place]) is not None:
                self.world.take_over(member, self.snapshot)
            elif fault.deed is Deed.SLOW:
                self.world.network.slow_ns.pop(self.names[place], None)
        self._cut()

    def _cut(self) -> None:
        cut: set[tuple[str, str]] = set()
        for fault in self.acting:
            cut |= fault.cut_pairs(self.names)
        self.world.network.cut = cut

    def _calm(self) -> None:
        network = self.world.network
        network.loss = network.duplication = network.straggling = 0.0

    # What is seen of it.

    def _note(self, boundary: int) -> None:
        for place, member in enumerate(self.members):
            if member is None or not member.is_live:
                continue
            self.is_up[boundary, place] = True
            now = member.clock.local_time(self.world.now)
            for group, key in enumerate(self.keys):
                share = member.brain.share(key)
                if share is None:
                    continue
                if share.messages is not None:
                    self.shares[boundary, group, place, 0] = share.messages / MILLI
                if share.bytes is not None:
                    self.shares[boundary, group, place, 1] = share.bytes / MILLI
                self.tokens[boundary, group] += member.brain.tokens(key, now)
        for told in self.on_boundary:
            told(boundary)
        self.rounds.number = boundary

    def _record(self) -> Recording:
        scenario = self.scenario
        boundaries = np.arange(scenario.rounds_all + 1) * scenario.round_ns
        meant = np.stack(
            [
                np.stack([schedule.meant_at(boundaries) for schedule in row], axis=1)
                for row in self.demand.schedules
            ],
            axis=1,
        )
        return Recording(
            brokers=tuple(self.names),
            groups=tuple(key.group for key in self.keys),
            round_ns=scenario.round_ns,
            warmup=scenario.warmup,
            quota=np.array([one or np.nan for one in self.quota]),
            floor_ppm=self.settings.floor_ppm,
            wanted=self._counted("wanted_messages", "wanted_bytes"),
            admitted=self._counted("admitted_messages", "admitted_bytes"),
            shares=self.shares,
            tokens=self.tokens,
            meant=meant,
            is_up=self.is_up,
            segments=segments_of(scenario, self.demand, self.faults),
            has_faults=scenario.has_faults,
        )

    def _counted(self, *names: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        counted = np.array(
            [[[getattr(one, name) for name in names] for one in row] for row in self.callers],
            dtype=np.int64,
        )
        return counted.transpose(3, 0, 1, 2)


def _network_of(scenario: Scenario) -> Network:
    return Network(
        delay_min_ns=int(min(scenario.delay_min_ms, scenario.delay_ms) * NS_PER_MS),
        delay_max_ns=int(scenario.delay_ms * NS_PER_MS),
        loss=scenario.loss,
        duplication=scenario.duplication,
        straggling=scenario.straggling,
        straggle_max_ns=scenario.round_ns,
        is_ordered=True,
    )


def _snapshot_of(keys: list[GroupKey], quota: tuple[float, float]) -> PolicySnapshot:
    rates = Rates(rate_of(quota[0]), rate_of(quota[1]))
    return PolicySnapshot({key.group: Group(key.group, Limit(rates)) for key in keys})


def _caller_of(
    scenario: Scenario, world: World, member: Member, group: str, rounds: RoundCount
) -> Caller:
    match scenario.callers:
        case CallerKind.GIVE_UP:
            return Caller(world, member, group, rounds)
        case CallerKind.RETRY:
            return RetryingCaller(
                world,
                member,
                group,
                rounds,
                retries=scenario.retries,
                says_attempt=scenario.says_attempt,
            )
        case CallerKind.WAIT:
            return WaitingCaller(world, member, group, rounds)
        case CallerKind.HOLD:
            return HoldingCaller(world, member, group, rounds)
        case CallerKind.LEASE:
            return LeasingCaller(world, member, group, rounds)
