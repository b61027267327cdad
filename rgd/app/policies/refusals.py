"""What is said of records that a table has and nobody here can use: counted all, logged a few.

Law: whoever may write to the topic cannot fill a log: of each key and reason so many characters are
told, of all records so many in so much time, and the rest is a number.
"""

import asyncio
from typing import Final

import structlog

#: Characters of a refused record's key and of the reason that are logged.
TOLD_CHARS_MAX: Final = 120
#: Records that are told in one line.
TOLD_RECORDS_MAX: Final = 5
#: Between two such lines.
TELL_EVERY_S: Final = 10.0

_log = structlog.get_logger("rgd.policies")


class Refusals:
    """Counts refused records, and tells of them now and then."""

    def __init__(self) -> None:
        #: Records refused since the start.
        self.count = 0
        self._told_count = 0
        self._told_at: float | None = None
        self._such_as: list[str] = []

    def add(self, key: str, reason: str) -> None:
        """Count a record that was refused."""
        self.count += 1
        if len(self._such_as) < TOLD_RECORDS_MAX:
            self._such_as.append(f"{shown(key)}: {shown(reason)}")

    def tell(self) -> None:
        """Log what was refused since the last line, unless that is not long ago."""
        fresh = self.count - self._told_count
        now = asyncio.get_running_loop().time()
        if not fresh or (self._told_at is not None and now < self._told_at + TELL_EVERY_S):
            return
        _log.warning("refused policy records", records=fresh, such_as=self._such_as)
        self._told_at, self._told_count, self._such_as = now, self.count, []


def shown(text: str) -> str:
    """A text of a stranger's, cut, with whatever could disturb a terminal escaped."""
    cut = (
        text
        if len(text) <= TOLD_CHARS_MAX
        else f"{text[:TOLD_CHARS_MAX]}... ({len(text)} characters)"
    )
    return cut.encode("unicode_escape").decode("ascii")
