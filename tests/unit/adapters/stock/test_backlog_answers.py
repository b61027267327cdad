"""What rgd makes of a topic's internal stats: positions, counts, and times; fed with a live broker's answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.stock import backlog_answers as answers
from rgd.core.backlog.model import TOPIC_LEDGERS_MAX, TOPIC_SUBSCRIPTIONS_MAX, Ledger, Position
from rgd.ports.stock import StockRefused

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "backlog_recorded.json").read_text())
LEDGERS = (Ledger(5, 10, 1350), Ledger(9, 0, 0), Ledger(10, 5, 675))


def stats(**changes: Any) -> answers.InternalStats:
    """The recorded topic with other fields."""
    return answers.STATS.decode(json.dumps({**RECORDED["internalStats"], **changes}))


def cursor(mark: str, **changes: Any) -> dict[str, Any]:
    """A durable cursor at a mark-delete position."""
    said = {"markDeletePosition": mark, "individuallyDeletedMessages": "[]"}
    return {**said, "cursorLedger": 7, "state": "Open", **changes}


@given(st.data())
def test_unacknowledged_entries_are_those_neither_before_the_mark_nor_in_a_range(
    data: st.DataObject,
) -> None:
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    ledgers = [Ledger(2 * at + 1, size, size) for at, size in enumerate(sizes)]
    entries = [Position(ledger.id, at) for ledger in ledgers for at in range(ledger.entries)]
    acknowledged = data.draw(st.sets(st.sampled_from(entries))) if entries else set()
    mark = Position(1, -1)
    for entry in entries:
        if entry not in acknowledged:
            break
        mark = entry
    # As Pulsar writes them: open below, closed above, within one ledger or over several.
    ranges = [
        f"({one.ledger}:{one.entry - 1}..{one.ledger}:{one.entry}]"
        for one in sorted(acknowledged)
        if one > mark
    ]
    count = answers.unacknowledged(answers.Entries(ledgers), mark, f"[{','.join(ranges)}]")
    assert count == len(entries) - len(acknowledged)


def test_too_many_ranges_are_not_counted() -> None:
    ranges = "x" * (answers.RANGES_CHARS_MAX + 1)
    assert answers.unacknowledged(answers.Entries(LEDGERS), Position(5, -1), ranges) is None


def test_times_are_the_brokers_and_the_producers() -> None:
    stamp = answers.stamp_of(RECORDED["headers"])
    assert stamp == answers.Stamp(1795345631604, 1795345631590)
    assert answers.stamp_of({}) == answers.Stamp(None, None)
    with pytest.raises(StockRefused, match="expected a time such as"):
        answers.stamp_of({answers.PUBLISH_TIME: "yesterday"})


def test_more_than_a_report_may_have_is_refused_with_what_to_do() -> None:
    many = [{"ledgerId": at, "entries": 1, "size": 1} for at in range(TOPIC_LEDGERS_MAX + 1)]
    with pytest.raises(StockRefused, match="managedLedgerMaxEntriesPerLedger"):
        answers.ledgers_of(stats(ledgers=many))
    cursors = {f"s{at}": cursor("5:2") for at in range(TOPIC_SUBSCRIPTIONS_MAX + 1)}
    with pytest.raises(StockRefused, match="1001 subscriptions"):
        answers.durable_cursors(stats(cursors=cursors))


@pytest.mark.parametrize("text", ["", "5", "5:", "a:b", "5:2:0", "9" * 30 + ":1"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(StockRefused, match="expected a position"):
        answers.position_of(text)
