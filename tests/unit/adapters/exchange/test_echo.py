"""When silence means that a session is dead: patience, loss, delay, standstill."""

import random

import pytest

from rgd.adapters.exchange.echo import STANDSTILL_S, WAITING_MAX, EchoWatch
from rgd.backoff import Backoff

PATIENCE_S = 2.0
LOOK_S = 0.25


class Watched:
    """A watch that is looked at several times a second, as its caller has to."""

    def __init__(self) -> None:
        self.echo = EchoWatch(PATIENCE_S)
        self.now_s = 100.0
        self.echo.is_overdue(self.now_s)

    def publish(self, payload: bytes) -> None:
        self.echo.published(payload, self.now_s)

    def goes_overdue(self, seconds: float) -> bool:
        """Whether it becomes overdue within this time."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += LOOK_S
            if self.echo.is_overdue(self.now_s):
                return True
        return False


def test_what_does_not_come_back_is_overdue_after_the_patience_and_not_before() -> None:
    watched = Watched()
    watched.publish(b"1")
    assert not watched.goes_overdue(PATIENCE_S)
    assert watched.goes_overdue(2 * LOOK_S)


def test_what_comes_back_clears_what_was_published_before_it_and_nothing_after() -> None:
    watched = Watched()
    for payload in (b"lost", b"read", b"waits"):
        watched.publish(payload)
    watched.echo.received(b"read")
    assert watched.echo.read_back == 1
    assert not watched.goes_overdue(PATIENCE_S)
    assert watched.goes_overdue(2 * LOOK_S)


def test_a_process_that_stood_still_does_not_blame_the_session() -> None:
    watched = Watched()
    watched.publish(b"1")
    watched.now_s += PATIENCE_S + STANDSTILL_S + 1
    assert not watched.echo.is_overdue(watched.now_s)
    # Its messages may wait to be read; they have the whole patience for it.
    assert not watched.goes_overdue(PATIENCE_S)
    assert watched.goes_overdue(2 * LOOK_S)


def test_another_session_does_not_wait_for_what_the_dead_one_sent() -> None:
    watched = Watched()
    watched.publish(b"1")
    watched.echo.restart()
    assert not watched.goes_overdue(10 * PATIENCE_S)


def test_it_remembers_the_oldest_of_many() -> None:
    watched = Watched()
    for number in range(10 * WAITING_MAX):
        watched.publish(b"%d" % number)
    assert len(watched.echo._waiting) == WAITING_MAX
    watched.echo.received(b"%d" % (10 * WAITING_MAX))
    assert watched.goes_overdue(2 * PATIENCE_S)


@pytest.mark.parametrize("seed", range(5))
def test_pauses_grow_to_their_bound_and_begin_again_after_success(seed: int) -> None:
    backoff = Backoff(first_s=0.1, pause_s_max=2.0, dice=random.Random(seed))
    unjittered = [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    for _ in range(2):
        for longest_s in unjittered:
            assert longest_s / 2 <= backoff.next_s() <= longest_s
        backoff.reset()
