"""What a window showed, what has been since the start, and which rate a flow is measured at.

Not covered: any sequence of calls against a plain model (tests/property/test_meter.py), and what is
made of the rates (test_estimator.py).
"""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from rgd.core.units import MILLI, Nanos, Pair
from tests.support.meters import Metered, Shown, Window, tell
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
) -> bool:
    jumped = False
    if admitted is not None:
        jumped |= meter.admit(admitted, attempt=attempt, topic=topic, now=ms(now))
    if refused is not None:
        jumped |= meter.refuse(refused, attempt, topic, retry_after, ms(now))
    return jumped


def drained(meter: Metered, now: float = 1000) -> Window:
    demand = meter.drain(ms(now))
    assert demand is not None
    return demand


def units(pair: Pair) -> tuple[float, float]:
    return pair.messages / MILLI, pair.bytes / MILLI


def flow(
    meter: Metered, rate: float, begin: float, end: float, *, refused: bool = False
) -> list[float]:
    """Evenly spaced messages of ten bytes from `begin` (not at it) up to `end`; when it jumped."""
    jumps = []
    for order in range(1, int((end - begin) * rate / 1000 + 1e-9) + 1):
        now = begin + order * 1000 / rate
        cost = Pair(1, 10)
        if note(
            meter, admitted=None if refused else cost, refused=cost if refused else None, now=now
        ):
            jumps.append(now)
    return jumps


def offered(measured: Shown) -> float:
    return measured.offered.messages / MILLI


# Windows and totals.


def test_a_window_is_told_in_rates_and_totals() -> None:
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


def test_totals_grow_and_windows_start_afresh() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(30, 3), refused=Pair(5, 1))
    drained(meter)
    note(meter, admitted=Pair(1, 1), topic="us", now=1500)
    demand = drained(meter, 2000)
    assert units(demand.wanted) == (1, 1)
    assert (demand.refused, demand.topics) == (Pair(), 1)
    assert (demand.admitted_total, demand.wanted_total) == (Pair(31, 4), Pair(36, 5))


def test_a_window_without_a_request_says_nothing_and_ends_all_the_same() -> None:
    meter = Metered(Nanos(0))
    assert meter.drain(ms(1000)) is None
    note(meter, admitted=Pair(10), now=1500)
    assert units(drained(meter, 2000).admitted) == (10, 0)
    assert meter.drain(ms(3000)) is None
    assert meter.measure(ms(3100)).requests == 0


def test_retries_are_not_new_demand_but_what_passed_was_wanted() -> None:
    meter = Metered(Nanos(0))
    note(meter, refused=Pair(10))
    note(meter, refused=Pair(10), attempt=2)
    note(meter, admitted=Pair(10), attempt=3)
    assert units(drained(meter).wanted) == (10, 0)
    note(meter, admitted=Pair(25), attempt=2)
    assert units(drained(meter, 2000).wanted) == (25, 0)


def test_what_is_held_back_is_wanted_by_the_last_word_of_each_topic() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(10, 10))
    meter.counters.hold(Pair(50, 5), "eu")
    meter.counters.hold(Pair(20, 2), "eu")
    meter.counters.hold(Pair(3, 1), None)
    demand = drained(meter)
    assert units(demand.wanted) == (33, 13)
    assert units(demand.measured.wanted) == (33, 13)
    note(meter, admitted=Pair(1), now=1000)
    # Until a caller speaks again, an early report goes by what it said last.
    assert units(meter.measure(ms(1100)).wanted)[0] >= 23
    assert units(drained(meter, 2000).wanted) == (1, 0)


def test_the_totals_count_the_open_window() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(10, 1), refused=Pair(5, 0))
    drained(meter)
    note(meter, admitted=Pair(2, 2), refused=Pair(9, 9))
    # What is wanted in the open window is known when it is closed.
    assert meter.totals() == (Pair(12, 3), Pair(15, 1))


def test_only_so_many_topics_are_told_apart() -> None:
    meter = Metered(Nanos(0), topics_max=2)
    for topic in ("a", "b", "c"):
        note(meter, admitted=Pair(1), topic=topic)
        meter.counters.hold(Pair(10), topic)
    meter.counters.hold(Pair(25), "a")
    demand = drained(meter)
    assert demand.topics == 2
    assert units(demand.wanted) == (3 + 25 + 10, 0)


# The measured rate.


@pytest.mark.parametrize("rate", [3, 7, 30, 300, 1234])
@pytest.mark.parametrize("round_end", [1000, 1437])
def test_evenly_spaced_callers_are_measured_exactly(rate: float, round_end: float) -> None:
    meter = Metered(Nanos(0))
    flow(meter, rate, 13, 4000)
    first = Metered(Nanos(0))
    flow(first, rate, 13, round_end)
    assert offered(drained(first, round_end).measured) == pytest.approx(rate, rel=0.001)
    assert offered(drained(meter, 4000).measured) == pytest.approx(rate, rel=0.001)


def test_a_step_within_a_round_is_not_diluted() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 300, 0, 1000)
    drained(meter)
    tell(meter, Pair(300 * MILLI, 3000 * MILLI), Pair(MILLI, 10 * MILLI), hungry=True)
    flow(meter, 300, 1000, 1450)
    flow(meter, 100, 1450, 2000)
    measured = drained(meter, 2000).measured
    assert offered(measured) == pytest.approx(100, rel=0.001)


def test_the_slot_of_a_step_counts_until_the_next_one_closes() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 300, 0, 1000)
    drained(meter)
    # Noise that hides the difference between the step's slot and the next one.
    tell(meter, Pair(300 * MILLI, 3000 * MILLI), Pair(150 * MILLI, 1500 * MILLI), hungry=True)
    flow(meter, 300, 1000, 1020)
    flow(meter, 100, 1020, 1125)
    mixed = meter.measure(ms(1125))
    assert 100 < offered(mixed) < 140
    flow(meter, 100, 1120, 2000)
    clean = drained(meter, 2000).measured
    assert offered(clean) == pytest.approx(100, rel=0.001)


def test_a_step_at_the_beginning_of_a_window_is_one() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 300, 0, 1000)
    drained(meter)
    tell(meter, Pair(300 * MILLI, 3000 * MILLI), Pair(MILLI, 10 * MILLI), hungry=True)
    flow(meter, 100, 1000, 1050)
    flow(meter, 100, 1050, 1250)
    assert offered(meter.measure(ms(1250))) == pytest.approx(100, rel=0.001)


def test_a_slot_with_one_unit_more_than_the_last_is_no_step() -> None:
    meter = Metered(Nanos(0))
    asked = 0
    for now in range(20, 3000, 20):
        if now % 1000 == 0:
            drained(meter, now)
            tell(meter, Pair(675 * MILLI, 0), Pair(MILLI, 0), hungry=True)
        wanted = int(675.33 * now / 1000)
        assert not note(meter, admitted=Pair(wanted - asked, 0), now=now)
        asked = wanted
    measured = drained(meter, 3000).measured
    assert offered(measured) == pytest.approx(675.33, rel=0.002)


def test_a_steady_flow_that_has_stopped_wants_nothing() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 300, 0, 1000)
    drained(meter)
    tell(meter, Pair(300 * MILLI), Pair(MILLI), hungry=True)
    flow(meter, 300, 1000, 1200)
    demand = drained(meter, 2000)
    assert demand.measured.offered == Pair()
    # The log has what was wanted in the round all the same.
    assert units(demand.wanted) == (60, 600)


def test_a_pause_counts_as_time_without_demand() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 300, 0, 1000)
    drained(meter)
    tell(meter, Pair(300 * MILLI), Pair(MILLI), hungry=True)
    flow(meter, 300, 1000, 1600)
    assert offered(drained(meter, 2000).measured) == pytest.approx(180, rel=0.1)


def test_a_fresh_group_is_believed_at_its_first_refusal() -> None:
    meter = Metered(Nanos(0))
    note(meter, refused=Pair(10), now=500)
    measured = meter.measure(ms(500))
    # No rate is reckoned over less than the least interval.
    assert offered(measured) == 100
    note(meter, refused=Pair(10), now=620)
    assert offered(meter.measure(ms(620))) == pytest.approx(10 / 0.12, rel=0.001)


def test_one_request_that_was_granted_is_one_in_a_round() -> None:
    meter = Metered(Nanos(0))
    note(meter, admitted=Pair(1), now=990)
    assert offered(drained(meter).measured) == 1


def test_an_early_measure_closes_no_window() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 100, 0, 500)
    meter.measure(ms(500))
    flow(meter, 100, 500, 1000)
    assert drained(meter).admitted_total == Pair(100, 1000)


# Jumps.


def told(rate: float, threshold: float, *, hungry: bool = True) -> Metered:
    """A meter that has seen a second of 100 messages/s and told so much."""
    meter = Metered(Nanos(0))
    flow(meter, 100, 0, 1000)
    drained(meter)
    rates, thresholds = round(rate * MILLI), round(threshold * MILLI)
    tell(meter, Pair(rates, rates * 10), Pair(thresholds, thresholds * 10), hungry=hungry)
    return meter


def test_what_was_told_is_no_jump() -> None:
    assert flow(told(100, 5), 100, 1000, 2000, refused=True) == []
    assert flow(told(100, 5), 100, 1000, 2000) == []


def test_more_than_was_told_is_a_jump_in_every_slot_while_this_broker_refuses() -> None:
    jumps = flow(told(50, 5), 100, 1000, 2000, refused=True)
    assert len(jumps) in {9, 10}
    assert all(later - earlier >= 99 for earlier, later in pairwise(jumps))
    assert flow(told(50, 5), 100, 1000, 2000) == []


def test_less_than_was_told_is_a_jump_where_others_go_short_and_nothing_is_refused() -> None:
    assert flow(told(200, 5), 100, 1000, 2000) != []
    assert flow(told(200, 5, hungry=False), 100, 1000, 2000) == []
    assert flow(told(200, 5), 100, 1000, 2000, refused=True) == []


def test_what_was_told_of_the_slot_of_a_step_is_corrected_by_the_next() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 100, 0, 1000)
    drained(meter)
    tell(meter, Pair(100 * MILLI, 1000 * MILLI), Pair(MILLI, 10 * MILLI), hungry=True)
    flow(meter, 100, 1000, 1050)
    flow(meter, 200, 1050, 1115)
    told = meter.measure(ms(1115))
    tell(meter, told.offered, Pair(MILLI, 10 * MILLI), hungry=True)
    # More, and nothing refused: nothing else would tell it before the round ends.
    assert len(flow(meter, 200, 1115, 1500)) == 1


def test_a_change_within_the_noise_is_no_jump() -> None:
    assert flow(told(50, 60), 100, 1000, 2000, refused=True) == []


def in_halves(rate: float, *, hungry: bool = True, half: float = 1) -> list[float]:
    """The jumps of 500 messages/s, where so much was told and no slot's change is one."""
    meter = Metered(Nanos(0))
    flow(meter, 500, 0, 1000)
    drained(meter)
    told, far = (Pair(round(one * MILLI), round(10 * one * MILLI)) for one in (rate, half))
    slot = Pair(50 * MILLI, 500 * MILLI)
    tell(meter, told, slot, hungry=hungry, half_threshold=far)
    return flow(meter, 500, 1000, 1900)


def test_a_step_too_small_for_a_slot_is_told_when_half_a_round_has_shown_it() -> None:
    for rate in (485, 515):
        (jump,) = in_halves(rate)
        assert 1400 <= jump <= 1620
    assert in_halves(485, hungry=False) == []
    assert in_halves(485, half=20) == []
    assert in_halves(497) == []


def test_a_step_too_small_for_a_slot_is_diluted_by_half_a_round_at_most() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 500, 0, 1000)
    drained(meter)
    far = Pair(MILLI, 10 * MILLI)
    slot = Pair(50 * MILLI, 500 * MILLI)
    tell(meter, Pair(500 * MILLI, 5000 * MILLI), slot, hungry=True, half_threshold=far)
    flow(meter, 500, 1000, 1390)
    flow(meter, 515, 1390, 2000)
    measured = drained(meter, 2000).measured
    assert offered(measured) == pytest.approx(515, rel=0.002)


# Callers that do not say which attempt it is.


def refuse_each(meter: Metered, moments: Iterable[float], *, retry_after: int) -> None:
    for now in moments:
        note(meter, refused=Pair(1), attempt=0, now=now, retry_after=retry_after)


def test_unsaid_refusals_of_a_fresh_group_count_as_its_first_slice_went_on() -> None:
    meter = Metered(Nanos(0))
    # Two in the first 100 ms; then each comes back every 20 ms.
    refuse_each(meter, [0, 50, *range(100, 1000, 10)], retry_after=100)
    assert units(drained(meter).wanted) == (20, 0)


def test_unsaid_refusals_count_up_to_four_times_what_was_told() -> None:
    meter = Metered(Nanos(0))
    tell(meter, Pair(5 * MILLI), Pair(), hungry=True)
    refuse_each(meter, range(0, 1000, 10), retry_after=10)
    assert units(drained(meter).wanted) == (20, 0)


def test_a_slice_as_long_as_the_told_wait_counts_whatever_was_told() -> None:
    meter = Metered(Nanos(0))
    tell(meter, Pair(5 * MILLI), Pair(), hungry=True)
    refuse_each(meter, range(0, 1000, 10), retry_after=600)
    assert units(drained(meter).wanted) == (60, 0)


def test_what_proved_to_be_retries_is_not_believed_again() -> None:
    meter = Metered(Nanos(0))
    flow(meter, 20, 0, 1000)
    refuse_each(meter, [500 + order for order in range(80)], retry_after=1)
    before = units(drained(meter).wanted)[0]
    tell(meter, Pair(100 * MILLI), Pair(MILLI), hungry=True)
    flow(meter, 20, 1000, 2000)
    drained(meter, 2000)
    tell(meter, Pair(100 * MILLI), Pair(MILLI), hungry=True)
    flow(meter, 20, 2000, 3000)
    refuse_each(meter, [2990 + order / 10 for order in range(80)], retry_after=1)
    assert before == 100
    assert units(drained(meter, 3000).wanted)[0] < 30
