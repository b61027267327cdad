"""What a report says: the oldest message, size, age, and how far to skip. Not the quota in force."""

import pytest

from rgd.core.backlog.estimate import keep_by_message_age, keep_by_size, oldest_of, unacknowledged
from rgd.core.backlog.model import Position, SubscriptionBacklog
from tests.support.there import there
from tests.unit.core.backlog.topics import READ_S, ledger, report, sub

#: Four ledgers of ten entries and 100 bytes; the last one is written.
LEDGERS = (
    ledger(1, closed_ago_s=300),
    ledger(2, closed_ago_s=200),
    ledger(4, closed_ago_s=100),
    ledger(7),
)


@pytest.mark.parametrize(
    ("at", "position", "size", "ledger_age_s"),
    [
        pytest.param((1, 0), (1, 0), 400, 300, id="first entry"),
        pytest.param((2, 9), (2, 9), 300, 200, id="last entry of a ledger counts it whole"),
        pytest.param((2, 10), (4, 0), 200, 100, id="after a ledger's end"),
        pytest.param((3, 5), (4, 0), 200, 100, id="in a deleted ledger"),
        pytest.param((0, 5), (1, 0), 400, 300, id="before the first ledger"),
        pytest.param((7, 9), (7, 9), 100, None, id="in the current ledger"),
    ],
)
def test_size_is_the_sum_from_the_oldest_messages_ledger_on(
    at: tuple[int, int], position: tuple[int, int], size: int, ledger_age_s: int | None
) -> None:
    oldest = there(oldest_of(report(sub(at=at), ledgers=LEDGERS)))
    assert (oldest.position, oldest.size_bytes) == (position, size)
    assert oldest.ledger_age_ms == (None if ledger_age_s is None else ledger_age_s * 1000)


@pytest.mark.parametrize("at", [None, (7, 10), (7, 99), (8, 0)])
def test_what_is_after_the_last_entry_is_no_backlog(at: tuple[int, int] | None) -> None:
    assert oldest_of(report(sub(at=at), ledgers=LEDGERS)) is None


def test_the_topics_backlog_is_that_of_the_oldest_message() -> None:
    of_three = report(sub("a", (4, 0)), sub("b", (2, 3), 250), sub("c", (2, 4)), ledgers=LEDGERS)
    oldest = there(oldest_of(of_three))
    assert (oldest.subscription, oldest.size_bytes, oldest.message_age_ms) == ("b", 300, 250_000)


def test_the_brokers_time_counts_before_the_producers() -> None:
    of_both = SubscriptionBacklog("a", Position(1, 0), (READ_S - 5) * 1000, (READ_S - 90) * 1000)
    oldest = there(oldest_of(report(of_both)))
    assert oldest.message_age_ms == 5000


def test_unacknowledged_messages_are_counted_or_taken_from_the_report() -> None:
    known = SubscriptionBacklog("known", Position(1, 0), messages=3)
    told = report(sub("a", (2, 4)), sub("b", None), known, ledgers=LEDGERS)
    assert dict(unacknowledged(told)) == {"a": 26, "b": 0, "known": 3}


def test_an_eviction_by_size_never_goes_back() -> None:
    assert keep_by_size(report(ledgers=LEDGERS), Position(7, 8), 100) == (7, 8)


@pytest.mark.parametrize(
    ("since_ago_s", "kept_from"),
    [
        pytest.param(280, (4, 0), id="the next ledger begins after one that was closed since"),
        pytest.param(150, (4, 5), id="another subscription's message is known to be young"),
        pytest.param(100, (7, 0), id="the current ledger is younger than the one before"),
        pytest.param(50, (7, 5), id="half of the current ledger, by its time"),
        pytest.param(0, (7, 10), id="nothing is so young"),
        pytest.param(-5, (7, 10), id="a time after the report"),
    ],
)
def test_by_messages_the_first_known_to_be_young_is_kept(
    since_ago_s: int, kept_from: tuple[int, int]
) -> None:
    told = report(sub("a", (1, 3), 310), sub("b", (4, 5), 140), ledgers=LEDGERS)
    since_ms = (READ_S - since_ago_s) * 1000
    assert keep_by_message_age(told, Position(1, 3), since_ms) == kept_from
