"""How long marked groups waited lately. Not covered: who waits (tests/unit/core/broker/test_sharing_slices.py)."""

from rgd.core.broker.damping import ROUNDS_REMEMBERED, Waits
from tests.unit.core.values import ms

ROUND_MS = 1000


def test_the_longest_wait_is_remembered_and_then_forgotten() -> None:
    waits = Waits(int(ms(ROUND_MS)))
    assert waits.longest_ns == 0
    waits.note(ms(8), ms(1))
    waits.note(ms(3), ms(2))
    assert waits.longest_ns == ms(8)
    span = ROUNDS_REMEMBERED * ROUND_MS
    waits.note(ms(1), ms(1 + span))
    assert waits.longest_ns == ms(8)
    waits.note(ms(2), ms(1 + 2 * span))
    assert waits.longest_ns == ms(2)
