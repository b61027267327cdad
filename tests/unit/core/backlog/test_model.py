"""What is refused of a report. Not what a report means."""

from dataclasses import replace
from typing import Any

import pytest

from rgd.core.backlog.model import TOPIC_LEDGERS_MAX, TOPIC_SUBSCRIPTIONS_MAX, check_backlog
from rgd.core.errors import InvalidBacklog, InvalidName
from tests.unit.core.backlog.topics import ledger, report, sub

GOOD = report(sub("a"), sub("b", None), ledgers=(ledger(1, closed_ago_s=5), ledger(3)))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"topic": "non-persistent://acme/orders/eu"}, "topic", id="no backlog"),
        pytest.param({"ledgers": (ledger(2, closed_ago_s=1), ledger(2))}, "ascending", id="twice"),
        pytest.param({"ledgers": (ledger(1), ledger(2))}, "closed_at_ms", id="two are open"),
        pytest.param({"subscriptions": (sub("a"), sub("a"))}, "once", id="a name twice"),
    ],
)
def test_a_bad_report_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidBacklog, match=named):
        check_backlog(replace(GOOD, **changes))


@pytest.mark.parametrize("changes", [{"topic": "eu"}, {"subscriptions": (sub(""),)}])
def test_a_bad_name_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidName):
        check_backlog(replace(GOOD, **changes))


def test_the_parts_of_a_topic_are_bounded() -> None:
    ledgers = tuple(ledger(1 + at, closed_ago_s=5) for at in range(TOPIC_LEDGERS_MAX + 1))
    subscriptions = tuple(sub(f"s{at}") for at in range(TOPIC_SUBSCRIPTIONS_MAX + 1))
    check_backlog(replace(GOOD, ledgers=ledgers[1:], subscriptions=subscriptions[1:]))
    for changes in ({"ledgers": ledgers}, {"subscriptions": subscriptions}):
        with pytest.raises(InvalidBacklog, match="at most 1000"):
            check_backlog(replace(GOOD, **changes))
