"""What a window showed, and what has been since the start.

Not covered: any sequence of calls against a plain model (tests/property/test_meter.py).
"""

import pytest

from rgd.core.demand import meter as meter_module
from rgd.core.demand.meter import Demand, DemandMeter
from rgd.core.units import MILLI, Nanos, Pair
from tests.unit.core.values import ms


def note(
    meter: DemandMeter,
    *,
    admitted: Pair | None = None,
    refused: Pair | None = None,
    attempt: int = 1,
    topic: str | None = "eu",
    now: float = 0,
) -> None:
    if admitted is not None:
        meter.admit(admitted, attempt=attempt, topic=topic, now=ms(now))
    if refused is not None:
        meter.refuse(refused, attempt=attempt, topic=topic, now=ms(now))


def drained(meter: DemandMeter, now: float = 1000, *, fresh: bool = False) -> Demand:
    demand = meter.drain(ms(now), fresh=fresh, period_min_ns=ms(100))
    assert demand is not None
    return demand


def units(pair: Pair) -> tuple[float, float]:
    return pair.messages / MILLI, pair.bytes / MILLI


def test_a_window_is_told_in_rates_and_totals() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, admitted=Pair(30, 300), refused=Pair(20, 200))
    note(meter, admitted=Pair(10, 0), topic="us")
    demand = drained(meter, 2000)
    assert units(demand.admitted) == (20, 150)
    assert units(demand.wanted) == (30, 250)
    assert demand.refused == Pair(20, 200)
    assert demand.topics == 2
    assert demand.admitted_total == Pair(40, 300)
    assert demand.wanted_total == Pair(60, 500)


def test_totals_grow_and_windows_start_afresh() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, admitted=Pair(30, 3), refused=Pair(5, 1))
    drained(meter)
    note(meter, admitted=Pair(1, 1), topic="us", now=1500)
    demand = drained(meter, 2000)
    assert units(demand.wanted) == (1, 1)
    assert (demand.refused, demand.topics) == (Pair(), 1)
    assert (demand.admitted_total, demand.wanted_total) == (Pair(31, 4), Pair(36, 5))


def test_a_window_without_a_request_says_nothing_and_ends_all_the_same() -> None:
    meter = DemandMeter(Nanos(0))
    assert meter.drain(ms(1000)) is None
    assert meter.opened_at == ms(1000)
    note(meter, admitted=Pair(10), now=1500)
    assert units(drained(meter, 2000).admitted) == (10, 0)
    assert meter.drain(ms(3000)) is None


def test_retries_are_not_new_demand_but_what_passed_was_wanted() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, refused=Pair(10))
    note(meter, refused=Pair(10), attempt=2)
    note(meter, admitted=Pair(10), attempt=3)
    assert units(drained(meter).wanted) == (10, 0)
    note(meter, admitted=Pair(25), attempt=2)
    assert units(drained(meter, 2000).wanted) == (25, 0)


def test_what_is_held_back_is_wanted_by_the_last_word_of_each_topic() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, admitted=Pair(10, 10))
    meter.hold(Pair(50, 5), "eu")
    meter.hold(Pair(20, 2), "eu")
    meter.hold(Pair(3, 1), None)
    assert units(drained(meter).wanted) == (33, 13)
    note(meter, admitted=Pair(1))
    assert units(drained(meter, 2000).wanted) == (1, 0)


def test_a_fresh_group_is_reckoned_from_its_first_request() -> None:
    def late() -> DemandMeter:
        meter = DemandMeter(Nanos(0))
        note(meter, admitted=Pair(10), now=500)
        note(meter, admitted=Pair(10), now=700)
        return meter

    assert units(drained(late()).wanted) == (20, 0)
    assert units(drained(late(), fresh=True).wanted) == (40, 0)


def test_no_rate_is_reckoned_over_less_than_the_least_period() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, admitted=Pair(10), now=999)
    assert units(drained(meter, 1000, fresh=True).wanted) == (100, 0)


def test_the_totals_count_the_open_window() -> None:
    meter = DemandMeter(Nanos(0))
    note(meter, admitted=Pair(10, 1), refused=Pair(5, 0))
    drained(meter)
    note(meter, admitted=Pair(2, 2), refused=Pair(9, 9))
    # What is wanted in the open window is known when it is closed.
    assert meter.totals() == (Pair(12, 3), Pair(15, 1))


def test_only_so_many_topics_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "WINDOW_TOPICS_MAX", 2)
    meter = DemandMeter(Nanos(0))
    for topic in ("a", "b", "c"):
        note(meter, admitted=Pair(1), topic=topic)
        meter.hold(Pair(10), topic)
    meter.hold(Pair(25), "a")
    demand = drained(meter)
    assert demand.topics == 2
    assert units(demand.wanted) == (3 + 25 + 10, 0)
