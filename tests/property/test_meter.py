"""Demand, however its windows are cut: nothing is lost, and less is never wanted than passed.

Not covered: rates of one window (tests/unit/core/demand/test_meter.py).
"""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.demand.bound import GROWTH
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair
from tests.support.meters import Metered, tell
from tests.support.there import there


@dataclass(frozen=True)
class Passing:
    """A request that was granted or refused, or the end of a window."""

    sort: str
    cost: Pair
    attempt: int
    gap_ms: int


def passings(attempts: st.SearchStrategy[int]) -> st.SearchStrategy[list[Passing]]:
    return st.lists(
        st.builds(
            Passing,
            st.sampled_from(["admit", "refuse", "drain", "measure"]),
            st.builds(Pair, st.integers(0, 1000), st.integers(0, 10**6)),
            attempts,
            st.integers(0, 500),
        ),
        max_size=50,
    )


@given(passings(st.integers(0, 3)))
def test_totals_are_what_passed_however_the_windows_are_cut(script: list[Passing]) -> None:
    meter, now = Metered(Nanos(0)), 0
    admitted, refused, refused_told, wanted_before = Pair(), Pair(), Pair(), Pair()
    for passing in [*script, Passing("drain", Pair(), 1, 1)]:
        now += passing.gap_ms * NS_PER_MS
        if passing.sort == "drain":
            demand = meter.drain(Nanos(now))
            if demand is not None:
                assert demand.admitted_total == admitted
                assert is_least(demand.admitted_total, demand.wanted_total)
                assert is_least(wanted_before, demand.wanted_total)
                assert is_least(Pair(), demand.measured.offered)
                refused_told = plus(refused_told, demand.refused)
                wanted_before = demand.wanted_total
            assert refused_told == refused
        elif passing.sort == "measure":
            measured = meter.measure(Nanos(now))
            assert is_least(Pair(), measured.admitted)
            assert is_least(measured.admitted, measured.offered)
        elif passing.sort == "admit":
            meter.admit(passing.cost, attempt=passing.attempt, topic=None, now=Nanos(now))
            admitted = plus(admitted, passing.cost)
        else:
            meter.refuse(passing.cost, passing.attempt, None, 10, Nanos(now))
            refused = plus(refused, passing.cost)
        assert meter.totals()[0] == admitted


@given(passings(st.just(1)), st.integers(1, 10_000))
def test_a_rate_times_its_window_is_what_was_counted(script: list[Passing], end_ms: int) -> None:
    meter, admitted = Metered(Nanos(0)), Pair()
    for passing in script:
        meter.admit(passing.cost, attempt=1, topic=None, now=Nanos(0))
        admitted = plus(admitted, passing.cost)
    demand = meter.drain(Nanos(end_ms * NS_PER_MS))
    if demand is None:
        assert script == []
        return
    for rate, count in zip(demand.admitted, admitted, strict=True):
        exact = count * MILLI * NS_PER_S
        assert abs(exact - rate * end_ms * NS_PER_MS) <= end_ms * NS_PER_MS
    assert demand.wanted == demand.admitted


@pytest.mark.slow
@given(passings(st.just(1)), passings(st.integers(2, 9)))
def test_refused_retries_never_raise_what_is_wanted(
    script: list[Passing], retries: list[Passing]
) -> None:
    plain, retried, now = Metered(Nanos(0)), Metered(Nanos(0)), 0
    for passing in script:
        now += passing.gap_ms * NS_PER_MS
        for meter in (plain, retried):
            if passing.sort == "refuse":
                meter.refuse(passing.cost, 1, None, 10, Nanos(now))
            else:
                meter.admit(passing.cost, attempt=1, topic=None, now=Nanos(now))
    for passing in retries:
        retried.refuse(passing.cost, passing.attempt, None, 10, Nanos(now))
    demand, same = plain.drain(Nanos(now + NS_PER_S)), retried.drain(Nanos(now + NS_PER_S))
    if demand is not None:
        assert same is not None
        assert same.wanted == demand.wanted


@given(
    told=st.integers(1, 10**6),
    gaps_ms=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    retry_after_ms=st.integers(1, 100),
)
def test_unsaid_refusals_are_bounded(told: int, gaps_ms: list[int], retry_after_ms: int) -> None:
    meter, moments = Metered(Nanos(0)), list[int]()
    tell(meter, Pair(told), Pair(), hungry=True)
    for gap_ms in gaps_ms:
        moments.append((moments[-1] if moments else 0) + gap_ms)
        meter.refuse(Pair(1), 0, None, retry_after_ms, Nanos(moments[-1] * NS_PER_MS))
    demand = there(meter.drain(Nanos((moments[-1] + 1) * NS_PER_MS)))
    window_s = (moments[-1] + 1) / 1000
    slices = [
        sum(begin <= moment < begin + retry_after_ms for moment in moments) for begin in moments
    ]
    most = max(*slices, GROWTH * told * window_s / MILLI)
    assert demand.wanted.messages * window_s / MILLI <= min(most, len(moments)) + window_s / MILLI


@pytest.mark.slow
@given(
    rate=st.integers(10, 2000), phase_ns=st.integers(0, NS_PER_S), window_ms=st.integers(500, 2000)
)
def test_evenly_spaced_callers_are_measured_exactly(
    rate: int, phase_ns: int, window_ms: int
) -> None:
    meter, end = Metered(Nanos(0)), 3 * window_ms * NS_PER_MS
    windows = [Nanos(order * window_ms * NS_PER_MS) for order in (1, 2)]
    moments = [phase_ns + order * NS_PER_S // rate for order in range(end * rate // NS_PER_S)]
    for moment in moments:
        if windows and moment >= windows[0]:
            meter.drain(windows.pop(0))
        if moment < end:
            meter.admit(Pair(1, 7), attempt=1, topic=None, now=Nanos(moment))
    demand = there(meter.drain(Nanos(end)))
    assert abs(demand.measured.offered.messages - rate * MILLI) <= 0.002 * rate * MILLI


def is_least(one: Pair, other: Pair) -> bool:
    return one.messages <= other.messages and one.bytes <= other.bytes


def plus(one: Pair, other: Pair) -> Pair:
    return Pair(one.messages + other.messages, one.bytes + other.bytes)
