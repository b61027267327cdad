"""What a level cut lately: the ring's window, and who is counted.

Not covered: how it is shown (tests/unit/views/test_explain.py).
"""

from rgd.core.buckets.recent_refusals import (
    REFUSAL_SLOT_NS,
    REFUSAL_SLOTS,
    RecentRefusals,
    Refusals,
    window_ns,
)
from rgd.core.units import NS_PER_S, Dimension, Nanos

MESSAGES, BYTES = Dimension.MESSAGES, Dimension.BYTES


def s(seconds: float) -> Nanos:
    return Nanos(round(seconds * NS_PER_S))


def test_each_dimension_is_counted_by_itself() -> None:
    refusals = RecentRefusals()
    refusals.count(2, 30, MESSAGES, 1, s(5))
    refusals.count(1, 10, MESSAGES, 3, s(6))
    refusals.count(0, 7, BYTES, 0, s(12))
    assert refusals.total(MESSAGES, s(12)) == Refusals(requests=2, retries=1, messages=3, bytes=40)
    assert refusals.total(BYTES, s(12)) == Refusals(requests=1, retries=0, messages=0, bytes=7)


def test_a_pause_leaves_no_old_slot_in_the_window() -> None:
    refusals = RecentRefusals()
    for at in (1, 11, 21, 95):
        refusals.count(1, 0, MESSAGES, 1, s(at))
    assert refusals.total(MESSAGES, s(95)).requests == 1


def test_the_window_is_the_open_slot_and_those_before_it() -> None:
    assert window_ns(s(60)) == (REFUSAL_SLOTS - 1) * REFUSAL_SLOT_NS
    assert window_ns(Nanos(s(70) - 1)) == REFUSAL_SLOTS * REFUSAL_SLOT_NS - 1
    # Whatever the window says is counted, and nothing else.
    refusals = RecentRefusals()
    for at in range(100):
        refusals.count(1, 0, MESSAGES, 1, s(at))
    assert refusals.total(MESSAGES, s(99)).requests == window_ns(s(99)) // NS_PER_S + 1
