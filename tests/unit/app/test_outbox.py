"""Which messages leave the queue, and which of them are dropped."""

from rgd.app.outbox import Outbox


def taken(outbox: Outbox[int | str], now_s: float) -> list[int | str]:
    """All that leave it now."""
    messages = []
    while (message := outbox.take(now_s)) is not None:
        messages.append(message)
    return messages


def test_messages_leave_in_order_and_a_full_queue_drops_its_oldest() -> None:
    outbox: Outbox[int | str] = Outbox(3)
    for message in range(5):
        outbox.put(message, 100)
    assert len(outbox) == 3
    assert taken(outbox, 1e9) == [2, 3, 4]
    assert outbox.dropped == {"outbox": 2}


def test_an_outdated_message_gives_way_to_later_ones_of_its_kind() -> None:
    outbox: Outbox[int | str] = Outbox(10, 1.0)
    for message in (1, "hello", 2, 3):
        outbox.put(message, 100)
    # The last of each kind is as good as a new one.
    assert taken(outbox, 101) == ["hello", 3]
    outbox.put(4, 101)
    outbox.put(5, 101.9)
    assert taken(outbox, 101.9) == [4, 5]
    assert outbox.dropped == {"outdated": 2}


def test_what_a_full_queue_dropped_counts_no_longer() -> None:
    outbox: Outbox[int | str] = Outbox(2, 1.0)
    for message in (1, "first", "second"):
        outbox.put(message, 100)
    assert taken(outbox, 105) == ["second"]
    assert outbox.dropped == {"outbox": 1, "outdated": 1}
