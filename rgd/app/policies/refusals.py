"""Reports unusable records of a table: it counts all and logs a few.

Law: a writer on the topic cannot fill the log. The characters of each key and reason, and the records
per log line and per time, are bounded; the rest is a number.
"""

import asyncio
from typing import Final

import structlog

#: Characters of a refused record's key and of the reason that are logged.
LOGGED_CHARS_MAX: Final = 120
#: Most records in one log line.
LOGGED_RECORDS_MAX: Final = 5
#: Least time between two such lines.
TELL_EVERY_S: Final = 10.0

_log = structlog.get_logger("rgd.policies")


class Refusals:
    """Counts refused records, and logs them at intervals."""

    def __init__(self) -> None:
        #: Records refused since the start.
        self.count = 0
        self._told_count = 0
        self._told_at: float | None = None
        self._such_as: list[str] = []

    def add(self, key: str, reason: str) -> None:
        """Count a record that was refused."""
        self.count += 1
        if len(self._such_as) < LOGGED_RECORDS_MAX:
            self._such_as.append(f"{shown(key)}: {shown(reason)}")

    def log(self) -> None:
        """Log the refusals since the last line, if that is long enough ago."""
        fresh = self.count - self._told_count
        now = asyncio.get_running_loop().time()
        if not fresh or (self._told_at is not None and now < self._told_at + TELL_EVERY_S):
            return
        _log.warning("refused policy records", records=fresh, such_as=self._such_as)
        self._told_at, self._told_count, self._such_as = now, self.count, []


def shown(text: str) -> str:
    """An untrusted text, truncated, with control characters escaped."""
    if len(text) > LOGGED_CHARS_MAX:
        text = f"{text[:LOGGED_CHARS_MAX]}... ({len(text)} characters)"
    return text.encode("unicode_escape").decode("ascii")
