"""The scenarios there are, each with its defaults; `python -m sim --list` prints them.

`targets` are what issue and design ask of `max-min` in that scenario; a run says which it met. The
laws that hold in every run are in `sim.checkers`, and `bounds` says how tightly.
"""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from sim import workloads
from sim.fault import Deed, Fault, plane_faults, random_faults
from sim.scenario import Bounds, CallerKind, Ground, Scenario

_AT_ONCE: Final = {
    "rounds_to_fair": "<= 1",
    "overshoot_round": "<= 1.10",
    "overshoot_10": "<= 1.02",
}
#: Where maps differ for rounds, or members come and go, what is handed out is bounded only loosely.
_LOOSE: Final = Bounds(shares=None, admitted_round=None, admitted_10=None)

#: Rounds that a fault lasts in the scenarios that have one of a kind.
_FAULT_ROUNDS: Final = 8


def _at(ground: Ground, round_number: float) -> int:
    """A moment, in rounds after the warm-up."""
    return ground.begin_ns + round(round_number * ground.round_ns)


def _half(ground: Ground) -> tuple[int, ...]:
    return tuple(range(max(1, ground.daemons // 2)))


def _one_fault(deed: Deed, places: Callable[[Ground], tuple[int, ...]]) -> "_Faults":
    def make(ground: Ground) -> tuple[Fault, ...]:
        begin = 3 + float(ground.dice.uniform(0, 1))
        end = _at(ground, begin + _FAULT_ROUNDS)
        return (Fault(deed, places(ground), _at(ground, begin), end),)

    return make


_Faults = Callable[[Ground], tuple[Fault, ...]]


def _join(ground: Ground) -> tuple[Fault, ...]:
    """The last one comes late; some time after, the first one leaves in order."""
    dice = ground.dice
    third = (ground.rounds - ground.warmup) / 3
    return (
        Fault(Deed.JOIN, (ground.daemons - 1,), _at(ground, third + dice.uniform(0, 1))),
        Fault(Deed.LEAVE, (0,), _at(ground, 2 * third + dice.uniform(0, 1))),
    )


def _mishaps(ground: Ground) -> tuple[Fault, ...]:
    """Every five minutes or so a crash, a cut or a pause of half a minute, in turn."""
    every, length = 300_000_000_000, 30_000_000_000
    deeds = (Deed.CRASH, Deed.CUT, Deed.FREEZE)
    faults = []
    for turn, moment in enumerate(range(ground.begin_ns + every, ground.end_ns - every, every)):
        at_ns = moment + int(ground.dice.uniform(0, 1) * ground.round_ns)
        place = int(ground.dice.integers(ground.daemons))
        faults.append(Fault(deeds[turn % len(deeds)], (place,), at_ns, at_ns + length))
    return tuple(faults)


def _false_clocks(ground: Ground) -> tuple[Fault, ...]:
    """One wall clock an hour ahead, one that jumps back; one daemon is stopped, one is killed."""
    part = (ground.rounds - ground.warmup) / 4
    hour_ns = 3_600_000_000_000

    def fault(deed: Deed, place: int, begin: float, end: float | None, amount_ns: int = 0) -> Fault:
        end_ns = None if end is None else _at(ground, end * part)
        return Fault(deed, (place % ground.daemons,), _at(ground, begin * part), end_ns, amount_ns)

    return (
        Fault(Deed.CLOCK, (1 % ground.daemons,), 0, None, hour_ns),
        fault(Deed.CLOCK, 2, 2.0, None, -hour_ns // 3),
        fault(Deed.FREEZE, 3, 1.0, 2.0),
        fault(Deed.CRASH, 4, 2.5, 3.25),
    )


def _zombie(ground: Ground) -> tuple[Fault, ...]:
    """The first one is stopped; another one is started in its place; the first one goes on."""
    begin = 3 + float(ground.dice.uniform(0, 1))
    return (
        Fault(Deed.FREEZE, (0,), _at(ground, begin), _at(ground, begin + _FAULT_ROUNDS)),
        Fault(Deed.DUPLICATE, (ground.daemons - 1,), _at(ground, begin + _FAULT_ROUNDS / 2)),
    )


def _zombies(ground: Ground) -> tuple[Fault, ...]:
    """Half of them have a duplicate: started while the first is stopped, cut off or slow, or not."""
    dice, half = ground.dice, ground.daemons // 2
    faults = []
    for place in range(half):
        begin = float(dice.uniform(1, 8))
        length = float(dice.uniform(0.5, 12))
        deed = (Deed.FREEZE, Deed.CUT, Deed.SLOW)[int(dice.integers(3))]
        end_ns = _at(ground, begin + length)
        slow_ns = 2 * ground.round_ns if deed is Deed.SLOW else 0
        faults.append(Fault(deed, (place,), _at(ground, begin), end_ns, slow_ns))
        duplicate_ns = _at(ground, begin + float(dice.uniform(-1, 1.2)) * length)
        begin_ns = max(duplicate_ns, ground.begin_ns)
        faults.append(Fault(Deed.DUPLICATE, (half + place,), begin_ns, of=place))
    return tuple(faults)


def _mix(ground: Ground) -> tuple[Fault, ...]:
    # The last third is quiet: there everybody must agree again.
    quiet_ns = (ground.end_ns - ground.begin_ns) // 3
    end_ns = ground.end_ns - quiet_ns
    faults = random_faults(
        ground.dice,
        daemons=ground.daemons,
        begin_ns=ground.begin_ns,
        end_ns=end_ns,
        round_ns=ground.round_ns,
    )
    return faults + _lost_planes(ground, end_ns, every_rounds=4, late_part=0.3, besides=faults)


def _planes(ground: Ground) -> tuple[Fault, ...]:
    end_ns = ground.end_ns - 6 * ground.round_ns
    return _lost_planes(ground, end_ns, every_rounds=3, late_part=0)


def _lost_planes(
    ground: Ground,
    end_ns: int,
    *,
    every_rounds: int,
    late_part: float,
    besides: tuple[Fault, ...] = (),
) -> tuple[Fault, ...]:
    return plane_faults(
        ground.dice,
        daemons=ground.daemons,
        within_ns=(ground.begin_ns, end_ns),
        every_ns=every_rounds * ground.round_ns,
        late_part=late_part,
        besides=besides,
    )


_NEWCOMER: Final = Scenario(
    "newcomer",
    "under overload an idle broker begins to want its part, stops, begins again",
    workloads.stepped(3, workloads.newcomer),
    rounds=36,
    targets=_AT_ONCE,
)
_SWAP: Final = Scenario(
    "swap",
    "one half of the brokers wants 30 times what the other half does, and then the other way round",
    workloads.stepped(3, workloads.swap),
    rounds=36,
    targets=_AT_ONCE,
)

_ALL: Final = (
    Scenario(
        "steady",
        "nothing happens, everybody wants more than there is",
        workloads.steady(1.25, spread=0.6),
    ),
    _NEWCOMER,
    Scenario(
        "spare",
        "there is enough for all when one broker after another wants six times as much",
        workloads.stepped(3, workloads.spare),
        rounds=36,
        targets=_AT_ONCE,
    ),
    _SWAP,
    Scenario(
        "heavy-tail",
        "a few brokers want almost everything; who they are is shuffled",
        workloads.stepped(3, workloads.heavy_tail),
        rounds=36,
        targets=_AT_ONCE,
    ),
    Scenario(
        "joiner",
        "a daemon starts late under overload, and another one leaves in order",
        workloads.steady(1.5),
        faults=_join,
        bounds=replace(Bounds(), shares=None),
    ),
    Scenario(
        "noise",
        "every round another normal demand, 30 % around 1.25 of the quota; callers wait in the round",
        workloads.noise(1.25, 0.3),
        daemons=20,
        rounds=1000,
        burst_ms=0,
        callers=CallerKind.WAIT,
        asks_per_s=20.0,
        targets={"utilisation": ">= 0.91", "movement": "<= 0.04"},
    ),
    Scenario(
        "poisson",
        "exponential gaps between requests of one message, and a half swap",
        workloads.stepped(1, workloads.swap),
        quota_per_daemon=100.0,
        is_poisson=True,
        rounds=60,
    ),
    Scenario(
        "two-dimensions",
        "messages and bytes in 1,000 random mixes: 20 groups, 50 steps",
        workloads.two_dimensions(50),
        daemons=5,
        groups=20,
        rounds=500,
        bytes_per_daemon=1000.0,
        asks_per_s=400.0,
        targets={"utilisation": ">= 0.99"},
    ),
    Scenario(
        "on-off",
        "at each step a coin says whether a broker wants twice its part or nothing",
        workloads.stepped(8, workloads.on_off),
        rounds=64,
    ),
    Scenario(
        "diurnal",
        "waves of demand that go round the brokers",
        workloads.diurnal(mean=1.1, swing=0.8, period_rounds=60),
        rounds=120,
    ),
    Scenario(
        "flash-crowd",
        "a third of the brokers wants ten times as much for a while",
        workloads.stepped(4, workloads.flash_crowd),
        rounds=40,
    ),
    Scenario(
        "retries",
        "steady overload, and every refused request comes back (--retries, default 5)",
        workloads.stepped(1, workloads.swap),
        callers=CallerKind.RETRY,
        retries=5,
    ),
    Scenario(
        "growth",
        "demand grows by 2, 4 and 10 while it is refused; no request says that it is a retry",
        workloads.stepped(7, workloads.growth),
        rounds=70,
        asks_per_s=100.0,
        callers=CallerKind.RETRY,
        retries=5,
        says_attempt=False,
    ),
    Scenario(
        "waiting",
        "callers hold back what they may not do and say how much",
        workloads.stepped(2, workloads.swap),
        callers=CallerKind.HOLD,
    ),
    Scenario(
        "leasing",
        "callers lease for a tenth of a second and take what part they can get",
        workloads.stepped(2, workloads.swap),
        callers=CallerKind.LEASE,
        asks_per_s=10.0,
    ),
    Scenario(
        "lossy",
        "10 % of all messages lost, delays up to a round, duplicates, reordering",
        workloads.stepped(3, workloads.swap),
        rounds=60,
        loss=0.1,
        duplication=0.1,
        straggling=1.0,
        bounds=_LOOSE,
    ),
    Scenario(
        "partition",
        "two halves that each have an exchange for a while, under overload",
        workloads.steady(1.5),
        faults=_one_fault(Deed.SPLIT, _half),
        bounds=replace(_LOOSE, shares=2.0),
        targets={"rounds_to_fair": "<= 2"},
    ),
    Scenario(
        "cut-off",
        "one broker has no exchange for a while",
        workloads.steady(1.5),
        faults=_one_fault(Deed.CUT, lambda _ground: (0,)),
        bounds=replace(_LOOSE, shares=1.3),
    ),
    Scenario(
        "mute",
        "nobody hears one broker for a while, which hears everybody but itself",
        workloads.steady(1.5),
        faults=_one_fault(Deed.MUTE, lambda _ground: (0,)),
        bounds=replace(_LOOSE, shares=1.3),
    ),
    Scenario(
        "zombie",
        "a broker is stopped, another daemon is started under its name, and the first one goes on",
        workloads.steady(1.5),
        daemons=5,
        rounds=36,
        faults=_zombie,
        bounds=Bounds(shares=None, heals_in_rounds=14),
        targets={"rounds_to_fair": "<= 12"},
    ),
    Scenario(
        "zombies",
        "stopped, cut off and slow brokers with duplicates",
        workloads.steady(3.0),
        daemons=6,
        rounds=50,
        asks_per_s=100.0,
        faults=_zombies,
        bounds=replace(_LOOSE, heals_in_rounds=16),
    ),
    Scenario(
        "skew",
        "clocks hours apart and a thousandth too fast or too slow; otherwise as newcomer",
        _NEWCOMER.workload,
        rounds=36,
        skew_s=36_000.0,
        drift_ppm=1000,
        targets=_AT_ONCE,
    ),
    Scenario(
        "false-clocks",
        "wrong wall clocks, a stopped and a killed daemon: for --log and the report",
        workloads.steady(1.5),
        daemons=5,
        rounds=60,
        faults=_false_clocks,
        bounds=_LOOSE,
    ),
    Scenario(
        "doorman",
        "45 clients, an hour in rounds of 10 s, shifting demand and mishaps",
        workloads.shifting(55, part=0.3),
        daemons=45,
        rounds=354,
        round_ms=10_000,
        # Of less often and larger requests a bucket of 250 ms cannot hold two, and loses tokens.
        asks_per_s=16.0,
        faults=_mishaps,
        bounds=_LOOSE,
        targets={
            "utilisation": ">= 0.99",
            "overshoot_round": "<= 1.06",
            "overshoot_10": "<= 1.02",
            "rounds_to_fair": "<= 2",
        },
    ),
    Scenario(
        "mix",
        "every kind of fault at any time, in small clusters; the last third is quiet",
        workloads.shifting(4, part=0.6),
        daemons=4,
        rounds=45,
        asks_per_s=100.0,
        loss=0.03,
        duplication=0.05,
        straggling=0.05,
        quiet_rounds=15,
        skew_s=3600.0,
        drift_ppm=100,
        faults=_mix,
        are_apart=True,
        bounds=_LOOSE,
    ),
    Scenario(
        "planes",
        "planes are killed, others take over in time, while demand shifts",
        workloads.shifting(4, part=0.6),
        daemons=4,
        rounds=45,
        asks_per_s=100.0,
        faults=_planes,
        are_apart=True,
        # A gate without a plane does not follow demand that shifts meanwhile.
        bounds=Bounds(shares=None, admitted_round=None, admitted_10=1.05, heals_in_rounds=3),
    ),
)

SCENARIOS: Final = MappingProxyType({scenario.name: scenario for scenario in _ALL})
