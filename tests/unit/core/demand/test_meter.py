"""What a window showed, what has been since the start, and which rate a flow is measured at.

Not covered: any sequence of calls against a plain model (tests/property/test_meter.py), and what is
made of the rates (test_estimator.py).
"""

from collections.abc import Iterable

import pytest

from rgd.core.units import MILLI, Nanos, Pair
from tests.support.meters import Metered, Window, tell
from tests.unit.core.values import ms


def note(
    meter: Metered,
    *,
    admitted: Pair | None = None,
    refused: Pair | None = None,
    attempt: int = 1,
    topic: str | None = "eu",
    now: float = 0,
    retry_after: int = 10,
) -> None:
    if admitted is not None:
        meter.admit(admitted, attempt=attempt, topic=topic, now=ms(now))
    if refused is not None:
        meter.refuse(refused, attempt, topic, retry_after, ms(now))


def drained(meter: Metered, now: float = 1000) -> Window:
    demand = meter.drain(ms(now))
    assert demand is not None
    return demand


def units(pair: Pair) -> tuple[float, float]:
    return pair.messages / MILLI, pair.bytes / MILLI


def flow(meter: Metered, rate: float, begin: float, end: float) -> None:
    """Evenly spaced messages of ten bytes from `begin` (not at it) up to `end`."""
    for order in range(1, int((end - begin) * rate / 1000 + 1e-9) + 1):
        note(meter, admitted=Pair(1, 10), now=begin + order * 1000 / rate)


# Windows and totals.


def test_a_window_is_reported_in_rates_and_totals() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(30, 300), refused=Pair(20, 200))
    note(meter, admitted=Pair(10, 0), topic="us")
    demand = drained(meter, 2000)
    assert units(demand.admitted) == (20, 150)
    assert units(demand.wanted) == (30, 250)
    assert demand.refused == Pair(20, 200)
    assert demand.topics == 2
    assert demand.admitted_total == Pair(40, 300)
    assert demand.wanted_total == Pair(60, 500)


def test_the_totals_count_the_open_window() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(10, 1), refused=Pair(5, 0))
    drained(meter)
    note(meter, admitted=Pair(2, 2), refused=Pair(9, 9))
    # What is wanted in the open window is known when it is closed.
    assert meter.totals() == (Pair(12, 3), Pair(15, 1))


# Jumps.


def test_a_step_too_small_for_a_slot_is_diluted_by_half_a_round_at_most() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 500, 0, 1000)
    drained(meter)
    far = Pair(MILLI, 10 * MILLI)
    slot = Pair(50 * MILLI, 500 * MILLI)
    tell(meter, Pair(500 * MILLI, 5000 * MILLI), slot, hungry=True, half_threshold=far)
    flow(meter, 500, 1000, 1390)
    flow(meter, 515, 1390, 2000)
    offered, _ = units(drained(meter, 2000).measured.offered)
    assert offered == pytest.approx(515, rel=0.002)


# Callers that do not say which attempt it is.


def refuse_each(meter: Metered, moments: Iterable[float], *, retry_after: int) -> None:
    for now in moments:
        note(meter, refused=Pair(1), attempt=0, now=now, retry_after=retry_after)


def test_unsaid_refusals_of_a_fresh_group_count_as_its_first_slice_went_on() -> None:
    meter = Metered(Nanos(0))
    # Two in the first 100 ms; then each comes back every 20 ms.
    refuse_each(meter, [0, 50, *range(100, 1000, 10)], retry_after=100)
    assert units(drained(meter).wanted) == (20, 0)


def test_unsaid_refusals_count_up_to_four_times_what_was_advertised() -> None:
    meter = Metered(Nanos(0))
    tell(meter, Pair(5 * MILLI), Pair(), hungry=True)
    refuse_each(meter, range(0, 1000, 10), retry_after=10)
    assert units(drained(meter).wanted) == (20, 0)


# Callers whose work comes back.


@pytest.mark.parametrize(("again", "wanted"), [(0, 100), (9, 110), (90, 125)])
def test_retries_let_demand_exceed_what_is_admitted_by_a_quarter(again: int, wanted: int) -> None:
    meter = Metered(Nanos(0))
    flow(meter, 100, 0, 500)
    note(meter, refused=Pair(again, 10 * again), attempt=2, now=500)
    flow(meter, 100, 500, 1000)
    assert units(drained(meter).measured.wanted) == (wanted, 10 * wanted)
