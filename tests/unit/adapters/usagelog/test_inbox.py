"""What wakes the thread that writes the usage log, and what is dropped before it comes there.

Not covered: what the thread does with it (test_writer.py).
"""

import threading
from collections.abc import Callable

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Pending
from rgd.adapters.usagelog.inbox import Inbox, Waiter
from rgd.adapters.usagelog.settings import UsageLogSettings

TIMEOUT_S = 60


def make_inbox(**settings: int) -> Inbox:
    return Inbox(UsageLogSettings(**settings))  # type: ignore[arg-type]


def taken_by_a_thread(inbox: Inbox, offer: Callable[[], object]) -> list[Pending | Waiter]:
    """What a thread that waits for ever takes once something is offered."""
    taken: list[Pending | Waiter] = []
    is_begun = threading.Event()

    def take() -> None:
        is_begun.set()
        while not taken:
            taken.extend(inbox.take(wait_s=None))

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert is_begun.wait(TIMEOUT_S)
    offer()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    return taken


def test_what_is_offered_wakes_the_thread() -> None:
    inbox = make_inbox()
    taken = taken_by_a_thread(inbox, lambda: inbox.offer(b"abc", 1, is_closed=False))
    assert taken == [Pending(b"abc", 1, 0)]


def test_what_does_not_fit_is_counted_and_leaves_a_gap() -> None:
    inbox = make_inbox(queue_max=2)
    kept = [inbox.offer(b"abc", time, is_closed=False) for time in (1, 2, 3)]
    first = inbox.take()
    assert (kept, inbox.dropped) == ([True, True, False], 1)
    for pending in first:
        assert isinstance(pending, Pending)
        inbox.left(pending)
    inbox.offer(b"", 1 << 70, is_closed=False)
    inbox.offer(b"", 4, is_closed=True)
    assert inbox.take() == [Pending(b"", TIMESTAMP_MAX, 3)]
    assert inbox.dropped == 2
