"""Which messages leave the queue, and which of them are dropped."""

from rgd.app.outbox import Outbox


def taken(outbox: Outbox[int | str], now_s: float) -> list[int | str]:
    """All that leave it now."""
    return list(iter(lambda: outbox.take(now_s), None))


def test_messages_leave_in_order_and_a_full_queue_drops_its_oldest() -> None:
    outbox: Outbox[int | str] = Outbox(3)
    for message in range(5):
        outbox.put(message, 100)
    assert taken(outbox, 1e9) == [2, 3, 4]
    assert outbox.dropped == {"outbox": 2}
