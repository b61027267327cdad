"""The events of the daemon's log and their stable codes; `events.toml` is the table.

Law: every line of the log has a `code`, by which people filter, alert and look up what to do. The table is found by
the event's text, so that calls log plain words. Lines of libraries have `LIBRARY`.
docs/events.md shows it.
"""

import tomllib
from collections.abc import MutableMapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

#: The code of lines that a library logs.
LIBRARY: Final = "library"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One kind of line."""

    code: str
    level: str
    #: The text that is logged; of the standard library's loggers the text before formatting.
    event: str
    meaning: str
    #: Empty: nothing.
    do: str
    #: The alert whose section of docs/runbooks.md leads to the cause, or "".
    runbook: str = ""


_TABLE: Final = files("rgd.app").joinpath("events.toml").read_text(encoding="utf-8")

#: All events, by code.
EVENTS: Final = {
    code: Event(**{"event": code.replace("_", " "), **row}, code=code)
    for code, row in tomllib.loads(_TABLE).items()
}
_CODES: Final = {event.event: event.code for event in EVENTS.values()}


def add_code(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Any:
    """Add the code to a line (a structlog processor)."""
    record = event.get("_record")
    text = event["event"] if record is None else record.msg
    event["code"] = _CODES.get(text, LIBRARY)
    return event
