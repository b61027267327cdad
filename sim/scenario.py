"""A scenario: everything a run depends on, as data; which there are is in `sim.scenarios`.

Law: a scenario, its options and a seed give one run. The rules (policy) are not part of it, so that
all of them meet the same load and the same network.

Amounts scale with the number of daemons: the quota is `quota_per_daemon` times as many, and a
workload speaks of the mean share. Time is in rounds of the world, which begin when it begins; the
members' own rounds begin when each of them starts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from rgd.core.bounds import BOUNDS as CORE_BOUNDS
from rgd.core.bounds import Bounds as CoreBounds
from rgd.core.units import NS_PER_MS, NS_PER_S
from sim.fault import Fault
from sim.schedule import Schedule


class CallerKind(StrEnum):
    """What callers do with a refusal (`sim.caller`)."""

    GIVE_UP = "give-up"
    RETRY = "retry"
    WAIT = "wait"
    HOLD = "hold"
    LEASE = "lease"


@dataclass(frozen=True, slots=True)
class Ground:
    """What a workload and its faults are made on."""

    daemons: int
    groups: int
    round_ns: int
    #: Rounds before anything is measured, and in all.
    warmup: int
    rounds: int
    #: A broker's even part of a group's quota, in messages and bytes per second.
    mean_messages: float
    mean_bytes: float
    dice: np.random.Generator

    @property
    def begin_ns(self) -> int:
        """When measuring begins."""
        return self.warmup * self.round_ns

    @property
    def end_ns(self) -> int:
        """When it ends."""
        return self.rounds * self.round_ns

    def steps(self, count: int) -> list[int]:
        """So many moments, evenly spread over what is measured, each at any moment of its round."""
        spacing = (self.rounds - self.warmup) // count
        if spacing < 1:
            raise ValueError(f"{self.rounds - self.warmup} rounds are too few for {count} steps")
        return [
            self.begin_ns + round((place * spacing + self.dice.uniform(0, 1)) * self.round_ns)
            for place in range(count)
        ]


@dataclass(frozen=True, slots=True)
class Demand:
    """What every load wants."""

    #: By group, then by place.
    schedules: Sequence[Sequence[Schedule]]
    #: When it changes so that shares have to be fair again, in ns.
    steps_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the checkers hold a run to, beside what always holds; None is not checked."""

    #: Shares in force, summed and integrated over any round, by the quota.
    shares: float | None = 1.03
    #: Admitted in a round and in ten, without tokens and a request a broker, by the quota.
    admitted_round: float | None = 1.10
    admitted_10: float | None = 1.02
    #: Rounds after the last fault until all live members agree.
    heals_in_rounds: int = 4


def _no_faults(_ground: Ground) -> tuple[Fault, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A name, what it shows, and its defaults; options of the command line replace some of them."""

    name: str
    title: str
    workload: Callable[[Ground], Demand]
    daemons: int = 10
    groups: int = 1
    #: Rounds that are measured, after `warmup` that are not.
    rounds: int = 30
    warmup: int = 6
    round_ms: int = 1000
    #: Of each group, in messages and bytes per second and daemon; 0 is unlimited.
    quota_per_daemon: float = 1000.0
    bytes_per_daemon: float = 0.0
    burst_ms: int = 250
    callers: CallerKind = CallerKind.GIVE_UP
    #: Of `retry` callers: how often they ask again, and whether they say so.
    retries: int = 0
    says_attempt: bool = True
    is_poisson: bool = False
    #: Requests of all loads at one broker, together.
    asks_per_s: float = 200.0
    #: Topics over which rows are spread by group.
    shards: int = 1
    delay_min_ms: float = 1.0
    delay_ms: float = 50.0
    loss: float = 0.0
    duplication: float = 0.0
    #: Part of the messages that take up to a round longer, and may be overtaken.
    straggling: float = 0.0
    #: Rounds at the end in which the network is in order.
    quiet_rounds: int = 0
    faults: Callable[[Ground], tuple[Fault, ...]] = _no_faults
    #: Largest difference and drift of the members' clocks.
    skew_s: float = 0.0
    drift_ppm: int = 0
    #: Over which part of a round the members' starts are spread.
    stagger: float = 1.0
    #: Whether members' gates and planes are apart, so that planes can be lost (`sim.planes`).
    are_apart: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    #: Of the core's tables and slices.
    core_bounds: CoreBounds = CORE_BOUNDS
    #: Figures that a run of `max-min` should reach, in words of the command line's last line.
    targets: dict[str, str] = field(default_factory=dict)

    @property
    def has_faults(self) -> bool:
        """Whether anything goes wrong in it."""
        return bool(self.loss or self.straggling or self.duplication) or (
            self.faults is not _no_faults
        )

    @property
    def round_ns(self) -> int:
        """A round's length."""
        return self.round_ms * NS_PER_MS

    @property
    def rounds_all(self) -> int:
        """Rounds of a run, warm-up included."""
        return self.warmup + self.rounds

    @property
    def gap_ns(self) -> int:
        """Between two requests of one load."""
        return round(NS_PER_S * self.groups / self.asks_per_s)

    def ground(self, seed: int) -> Ground:
        """The ground of one run."""
        return Ground(
            daemons=self.daemons,
            groups=self.groups,
            round_ns=self.round_ns,
            warmup=self.warmup,
            rounds=self.rounds_all,
            mean_messages=self.quota_per_daemon,
            mean_bytes=self.bytes_per_daemon,
            dice=np.random.default_rng([seed, 1]),
        )
