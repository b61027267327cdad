"""The last events of the daemon's log, for the live view; a structlog processor.

Law: at most `EVENTS_MAX` events are kept, each with at most `DETAILS_CHARS_MAX` characters of details. It stands behind
`rgd.app.logs.redact`, so that no secret is kept. Events come from any thread.
"""

from collections import deque
from collections.abc import MutableMapping
from datetime import datetime
from itertools import count
from typing import Any, Final

from rgd.app.events import EVENTS
from rgd.text import cut
from rgd.views.live_model import EventView

EVENTS_MAX: Final = 200
DETAILS_CHARS_MAX: Final = 300

#: What every event has, or is too long to be shown in a line.
_NO_DETAILS: Final = frozenset(
    {"event", "level", "logger", "timestamp", "code", "exception", "traceback"}
)


class RecentEvents:
    """The last events, oldest first."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._kept: deque[EventView] = deque(maxlen=EVENTS_MAX)

    def __call__(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Keep an event, and pass it on."""
        details = ", ".join(
            f"{key}={value}"
            for key, value in event.items()
            if key not in _NO_DETAILS and not key.startswith("_")
        )
        known = EVENTS.get(event["code"])
        self._kept.append(
            EventView(
                number=next(self._numbers),
                unix_ms=round(datetime.fromisoformat(event["timestamp"]).timestamp() * 1000),
                level=event["level"],
                code=event["code"],
                event=cut(str(event["event"]), DETAILS_CHARS_MAX),
                details=cut(details, DETAILS_CHARS_MAX),
                meaning=known.meaning if known else "",
                do=known.do if known else "",
                runbook=known.runbook if known else "",
            )
        )
        return event

    @property
    def last(self) -> int:
        """The number of the newest event; 0: there is none."""
        kept = self._kept
        return kept[-1].number if kept else 0

    def all(self) -> tuple[EventView, ...]:
        """Every kept event."""
        return tuple(self._kept)
