"""What wakes the thread that writes the usage log, and what is lost before it comes there.

Not covered: what the thread does with it (test_writer.py).
"""

import threading

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Pending
from rgd.adapters.usagelog.inbox import Inbox
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import PoliciesInForce, Sender
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT

TIMEOUT_S = 60


def make_inbox(**settings: int) -> Inbox:
    return Inbox(UsageLogSettings(**settings))  # type: ignore[arg-type]


def test_what_is_offered_wakes_the_thread() -> None:
    inbox = make_inbox()
    asked = threading.Event()

    def idle_s() -> float:
        asked.set()
        return 0 if inbox.pending else 2 * TIMEOUT_S

    thread = threading.Thread(target=inbox.wait, args=(idle_s,), daemon=True)
    thread.start()
    assert asked.wait(TIMEOUT_S)
    inbox.offer(b"abc", 1)
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert inbox.first(9, 9) == [Pending(b"abc", 1, 0)]


def test_what_does_not_fit_is_counted_and_leaves_a_gap() -> None:
    inbox = make_inbox(queue_max=2)
    for time in (1, 2, 3):
        inbox.offer(b"abc", time)
    assert (inbox.pending, inbox.lost) == (2, 1)
    assert not inbox.offer(PoliciesInForce(Sender("b1", 1), EMPTY_SNAPSHOT), 3)
    assert inbox.lost == 1, "policies are offered again"
    inbox.written(2)
    inbox.offer(b"", 1 << 70)
    assert inbox.first(9, 9) == [Pending(b"", TIMESTAMP_MAX, 3)]
    ended = inbox.close()
    inbox.offer(b"", 4)
    assert inbox.lost == 2
    assert not ended.done()
    inbox.end()
    assert ended.done()
    assert inbox.lost == 3
