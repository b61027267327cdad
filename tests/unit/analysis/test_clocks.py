"""The error of each broker's clock is recovered from what the brokers had received of one another.

Not covered: reading headers from segments (test_headers), a clock that is off or jumps and brokers that never received
one another, by example (test_untrue_logs).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.analysis.clocks import AS_STAMPED, Clocks, align
from rgd.analysis.schema import HEADERS, arrow
from rgd.analysis.timelines import Records, gather_records
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.wire.frame import Entry

ROUND_MS = 1000.0
TOLERANCE_MS = 2 * ROUND_MS
HOUR_MS = 3_600_000.0
NOON_MS = 1_795_262_400_000.0


@dataclass
class Daemon:
    """One incarnation of a broker in a small world of records and reports."""

    broker: str
    #: How far its wall clock is ahead, in steps: from a moment of true time on, by so much.
    ahead_ms: Sequence[tuple[float, float]] = ((0.0, 0.0),)
    #: When it writes its first record, and how many it writes; true time.
    begin_ms: float = 0.0
    rounds: int = 60
    incarnation: int = 1
    #: Its monotonic clock, which does not run while the machine sleeps.
    boot_ms: float = 50_000.0
    drift: float = 0.0
    #: From which moment to which the machine sleeps.
    sleeps_ms: tuple[float, float] | None = None
    true_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        times = self.begin_ms + ROUND_MS * (1 + self.drift) * np.arange(self.rounds)
        if self.sleeps_ms is not None:
            asleep, awake = self.sleeps_ms
            times = np.where(times > asleep, times + awake - asleep, times)
        self.true_ms = times.tolist()

    def clock(self, true_ms: float) -> float:
        """What its wall clock says."""
        ahead = max((step for step in self.ahead_ms if step[0] <= true_ms), default=(0.0, 0.0))[1]
        return round(NOON_MS + true_ms + ahead)

    def local(self, true_ms: float) -> float:
        """What its monotonic clock says."""
        slept = 0.0
        if self.sleeps_ms is not None and true_ms > self.sleeps_ms[0]:
            slept = self.sleeps_ms[1] - self.sleeps_ms[0]
        return self.boot_ms + (true_ms - slept) / (1 + self.drift)


def records_of(
    daemons: Sequence[Daemon],
    *,
    seed: int = 0,
    loss: float = 0.0,
    delay_ms: float = 50.0,
    late: float = 0.0,
    idle: float = 0.0,
) -> Records:
    """Let the daemons run: what the headers of their logs come to."""
    dice = np.random.default_rng(seed)
    arrived: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for sender, one in enumerate(daemons):
        for receiver in range(len(daemons)):
            if sender == receiver:
                continue
            size = len(one.true_ms)
            delay = dice.uniform(0, delay_ms, size)
            delay += np.where(dice.random(size) < late, dice.uniform(0, 3 * ROUND_MS, size), 0.0)
            kept = dice.random(size) >= loss
            arrived[receiver, sender] = [
                (one.true_ms[k] + delay[k], k + 1) for k in range(size) if kept[k]
            ]
    rows = []
    for place, one in enumerate(daemons):
        for k, moment in enumerate(one.true_ms):
            if dice.random() < idle:
                continue
            seen = []
            for sender, other in enumerate(daemons):
                got = [s for at, s in arrived.get((place, sender), ()) if at <= moment]
                # A peer that has been silent for long is forgotten.
                if got and moment - other.true_ms[max(got) - 1] < 5 * ROUND_MS:
                    seen.append((other.broker, other.incarnation, max(got)))
            rows.append(
                {
                    "broker": one.broker,
                    "incarnation": f"{one.incarnation:016x}",
                    "sequence": k + 1,
                    "clock_ms": int(one.clock(moment)),
                    "local_ms": one.local(moment),
                    "peers": [name for name, _, _ in seen],
                    "peer_incarnations": [number for _, number, _ in seen],
                    "peer_sequences": [sequence for _, _, sequence in seen],
                }
            )
    return gather_records(pa.Table.from_pylist(rows, schema=arrow(HEADERS)), TOLERANCE_MS)


def time_of(clocks: Clocks, one: Daemon, place: int) -> float:
    """The time that the report gives to a record, as true time."""
    moment = one.true_ms[place]
    clock_ms = int(one.clock(moment))
    record = RoundRecord(
        Sender(one.broker, one.incarnation), place + 1, 1, ended_ns=int(one.local(moment) * 1e6)
    )
    return clocks.time_of(Entry("", 0, clock_ms, b""), record) - NOON_MS


def worst_error(clocks: Clocks, daemons: Sequence[Daemon], records: Records) -> float:
    """By how many rounds the corrected times of what was logged differ from the truth, at most."""
    daemon_of = {(one.broker, f"{one.incarnation:016x}"): one for one in daemons}
    errors = [
        time_of(clocks, one, sequence - 1) - one.true_ms[sequence - 1]
        for number, sequence in zip(records.timeline, records.sequence.tolist(), strict=True)
        for one in (daemon_of[records.timelines[number]],)
    ]
    return float(max(abs(error) for error in errors)) / ROUND_MS


def test_the_clock_of_a_single_broker_is_compared_with_itself() -> None:
    daemons = [Daemon("b1", ahead_ms=[(0, 0.0), (40_000, HOUR_MS)])]

    clocks = align(records_of(daemons), ROUND_MS)

    assert [(one.broker, one.ahead_ms) for one in clocks.errors] == [("b1", HOUR_MS)]
    assert worst_error(clocks, daemons, records_of(daemons)) < 0.01
    assert clocks.unaligned == ()


def test_most_brokers_decide_and_of_two_the_first_by_name() -> None:
    two = [Daemon("b1"), Daemon("b2", ahead_ms=[(0, HOUR_MS)])]
    three = [*two, Daemon("b3", ahead_ms=[(0, HOUR_MS)])]

    assert [one.broker for one in align(records_of(two), ROUND_MS).errors] == ["b2"]
    (found,) = align(records_of(three), ROUND_MS).errors
    assert (found.broker, round(found.ahead_ms / HOUR_MS)) == ("b1", -1)


def test_a_restart_begins_a_timeline_of_its_own() -> None:
    daemons = [
        Daemon("b1", begin_ms=100, rounds=120),
        Daemon("b2", begin_ms=400, rounds=40, ahead_ms=[(0, HOUR_MS)]),
        Daemon("b2", begin_ms=60_000, incarnation=2, boot_ms=7.0, ahead_ms=[(0, HOUR_MS)]),
        Daemon("b3", begin_ms=700, rounds=120),
    ]

    clocks = align(records_of(daemons), ROUND_MS)

    (found,) = clocks.errors
    assert found.broker == "b2"
    assert found.to_ms - found.from_ms > 100_000
    assert worst_error(clocks, daemons, records_of(daemons)) < 1


def test_an_incarnation_that_met_nobody_has_the_clock_error_of_the_one_before() -> None:
    daemons = [
        Daemon("b1", begin_ms=100),
        Daemon("b2", begin_ms=400, ahead_ms=[(0, HOUR_MS)]),
        Daemon(
            "b2", begin_ms=90_000, rounds=5, incarnation=2, boot_ms=7.0, ahead_ms=[(0, HOUR_MS)]
        ),
    ]

    clocks = align(records_of(daemons), ROUND_MS)

    assert worst_error(clocks, daemons, records_of(daemons)) < 1
    assert clocks.unaligned == ()


def test_one_that_ran_alone_before_the_others_met_does_not_decide() -> None:
    daemons = [
        Daemon("b1", rounds=5),
        Daemon("b1", begin_ms=90_000, incarnation=2, boot_ms=7.0),
        Daemon("b2", begin_ms=90_400, ahead_ms=[(0, HOUR_MS)]),
    ]

    (found,) = align(records_of(daemons), ROUND_MS).errors

    assert round(abs(found.ahead_ms) / HOUR_MS) == 1


@pytest.mark.parametrize("seed", [2, 9, 11, 16])
def test_clocks_that_few_records_do_not_contradict_are_right(seed: int) -> None:
    daemons = [Daemon(f"b{k}", begin_ms=400.0 * k, boot_ms=1e6 * k) for k in range(3)]
    clocks = align(records_of(daemons, seed=seed, idle=0.9), ROUND_MS)
    assert (clocks.errors, clocks.offsets) == ((), {})


def test_no_records_are_no_trouble() -> None:
    assert align(records_of([]), ROUND_MS) == AS_STAMPED


errors_ms = st.one_of(
    st.just(0.0), st.floats(-2 * HOUR_MS, 2 * HOUR_MS).filter(lambda ms: abs(ms) > 4 * ROUND_MS)
)


@given(
    ahead=st.lists(
        st.tuples(
            errors_ms, st.floats(0, 2 * ROUND_MS), st.floats(-3e-4, 3e-4), st.floats(1, 1e10)
        ),
        min_size=1,
        max_size=3,
    ),
    # Of 15 rounds on either side of the jump enough records are left: each lost or idle one loosens the bounds.
    jump=st.tuples(errors_ms, st.integers(15, 50)),
    more_rounds=st.integers(15, 40),
    network=st.tuples(st.floats(0, 0.4), st.floats(0, 400), st.floats(0, 0.2), st.floats(0, 0.3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_times_are_recovered_within_a_round_whatever_the_network_did(
    ahead: list[tuple[float, float, float, float]],
    jump: tuple[float, int],
    more_rounds: int,
    network: tuple[float, float, float, float],
    seed: int,
) -> None:
    # Three brokers whose clocks agree, so that there is a truth; the others are off, the last jumps.
    rounds = jump[1] + more_rounds
    daemons = [Daemon(f"a{k}", begin_ms=333.0 * k, rounds=rounds) for k in range(3)]
    for k, (error, begin, drift, boot) in enumerate(ahead):
        steps = [(0.0, error)]
        if k == len(ahead) - 1:
            steps.append((jump[1] * ROUND_MS, jump[0]))
        daemons.append(
            Daemon(
                f"b{k}", ahead_ms=steps, begin_ms=begin, drift=drift, boot_ms=boot, rounds=rounds
            )
        )
    loss, delay_ms, late, idle = network

    records = records_of(daemons, seed=seed, loss=loss, delay_ms=delay_ms, late=late, idle=idle)
    clocks = align(records, ROUND_MS)

    assert clocks.unaligned == ()
    assert worst_error(clocks, daemons, records) <= 1 + delay_ms / ROUND_MS
