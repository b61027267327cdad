"""What the live view keeps: the last events of the log, and ten minutes of rows."""

from typing import Any

import structlog

from rgd.app.events import add_code
from rgd.app.live_history import POINTS_MAX, ROWS_MAX, History
from rgd.app.logs import redact
from rgd.app.recent_events import DETAILS_CHARS_MAX, RecentEvents
from rgd.core.units import Dimension
from rgd.views.live_model import PressureView
from rgd.views.pressure import RowKey
from tests.unit.core.values import key


def logger(events: RecentEvents) -> Any:
    return structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_code,
            redact,
            events,
        ],
    )


def test_events_are_kept_with_what_they_mean_and_without_secrets() -> None:
    events = RecentEvents()
    logger(events).warning("isolated", broker="b1", token="s3cret", url="http://u:s3@cret@b2/x@y")
    logger(events).info("nobody knows this", size="x" * 1000)
    known, other = events.all()
    assert (known.number, known.level, known.code, known.runbook) == (
        1,
        "warning",
        "isolated",
        "RgdIsolated",
    )
    assert known.details == "broker=b1, token=[redacted], url=http://[redacted]@b2/x@y"
    assert known.meaning
    assert known.do
    assert (other.code, other.meaning, len(other.details)) == ("library", "", DETAILS_CHARS_MAX + 3)


def row(group: str, wanted: float) -> tuple[RowKey, PressureView]:
    view = PressureView(
        group, "publish", "messages", 10, wanted, 5, wanted / 10, None, None, (), None, {}, False
    )
    return RowKey(key(group), Dimension.MESSAGES), view


def test_the_row_that_was_not_shown_for_longest_makes_room() -> None:
    history = History()
    history.add([row(f"g{at}", at) for at in range(ROWS_MAX)], 0)
    history.add([row("g0", 7), row("new", 1)], 1000)
    assert history.of(row("g1", 0)[0]) is None
    for name, wanted in (("g0", (0, 7)), ("new", (1,))):
        found = history.of(row(name, 0)[0])
        assert found is not None
        assert found.wanted == wanted
    for at in range(POINTS_MAX):
        history.add([], 2000 + at)
    assert history.of(row("g0", 0)[0]) is None
