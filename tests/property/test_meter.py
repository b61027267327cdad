"""Demand, however its windows are cut: nothing is lost, and less is never wanted than passed.

Not covered: rates of one window (tests/unit/core/demand/test_meter.py).
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.demand.meter import DemandMeter
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair


@dataclass(frozen=True)
class Passing:
    """A request that was granted or refused, or the end of a window."""

    sort: str
    cost: Pair
    attempt: int
    gap_ms: int


passings = st.lists(
    st.builds(
        Passing,
        st.sampled_from(["admit", "refuse", "drain"]),
        st.builds(Pair, st.integers(0, 1000), st.integers(0, 10**6)),
        st.integers(1, 3),
        st.integers(0, 500),
    ),
    max_size=50,
)


@given(passings)
def test_totals_are_what_passed_however_the_windows_are_cut(script: list[Passing]) -> None:
    meter, now = DemandMeter(Nanos(0)), 0
    admitted, refused, refused_told, wanted_before = Pair(), Pair(), Pair(), Pair()
    for passing in [*script, Passing("drain", Pair(), 1, 1)]:
        now += passing.gap_ms * NS_PER_MS
        if passing.sort == "drain":
            demand = meter.drain(Nanos(now))
            if demand is not None:
                assert demand.admitted_total == admitted
                assert is_least(demand.admitted_total, demand.wanted_total)
                assert is_least(wanted_before, demand.wanted_total)
                refused_told = plus(refused_told, demand.refused)
                wanted_before = demand.wanted_total
            assert refused_told == refused
        elif passing.sort == "admit":
            meter.admit(passing.cost, attempt=passing.attempt, topic=None, now=Nanos(now))
            admitted = plus(admitted, passing.cost)
        else:
            meter.refuse(passing.cost, attempt=passing.attempt, topic=None, now=Nanos(now))
            refused = plus(refused, passing.cost)
        assert meter.totals()[0] == admitted


@given(passings, st.integers(1, 10_000))
def test_a_rate_times_its_window_is_what_was_counted(script: list[Passing], end_ms: int) -> None:
    meter, admitted = DemandMeter(Nanos(0)), Pair()
    for passing in script:
        meter.admit(passing.cost, attempt=1, topic=None, now=Nanos(0))
        admitted = plus(admitted, passing.cost)
    demand = meter.drain(Nanos(end_ms * NS_PER_MS))
    if demand is None:
        assert script == []
        return
    for rate, count in zip(demand.admitted, admitted, strict=True):
        exact = count * MILLI * NS_PER_S
        assert 0 <= exact - rate * end_ms * NS_PER_MS < end_ms * NS_PER_MS
    assert demand.wanted == demand.admitted


def is_least(one: Pair, other: Pair) -> bool:
    return one.messages <= other.messages and one.bytes <= other.bytes


def plus(one: Pair, other: Pair) -> Pair:
    return Pair(one.messages + other.messages, one.bytes + other.bytes)
