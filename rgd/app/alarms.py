"""Logs the core's alarms at a bounded rate.

Law: at most `LINES_A_MINUTE` lines a minute are written for one alarm and broker, and at most
`LINES_OF_CODE_A_MINUTE` for one alarm, whatever the peers do. Omitted alarms are counted. The
next line of the kind reports the count, or the next line of any kind after the minute.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from rgd.app.events import EVENTS
from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.units import NS_PER_S, Nanos

#: Lines of one alarm and broker in a minute, and of one alarm and all brokers.
LINES_A_MINUTE: Final = 6
LINES_OF_CODE_A_MINUTE: Final = 60

#: Most pairs of alarm and broker with a count of their own; further ones share the count of their alarm.
FOLLOWED_MAX: Final = 1_000

_WINDOW_NS: Final = 60 * NS_PER_S

_log = structlog.get_logger("rgd.daemon")


@dataclass(slots=True)
class _Window:
    """A minute of one alarm."""

    since: Nanos
    lines: int = 0
    suppressed: int = 0


class AlarmLog:
    """Writes alarms of a daemon whose broker has this name."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._windows: dict[tuple[AlarmCode, str], _Window] = {}
        self._of_code: dict[AlarmCode, _Window] = {}

    @property
    def followed(self) -> int:
        """How many pairs of alarm and broker have a count of their own; at most `FOLLOWED_MAX`."""
        return len(self._windows)

    def tell(self, alarm: Alarm, now: Nanos) -> None:
        """Write an alarm, or count it."""
        broker = alarm.broker or self._broker
        self._close(now)
        of_code = self._of_code.setdefault(alarm.code, _Window(now))
        key = (alarm.code, broker)
        window = self._windows.get(key)
        if window is None:
            window = of_code
            if len(self._windows) < FOLLOWED_MAX:
                window = self._windows[key] = _Window(now)
        if window.lines >= LINES_A_MINUTE and window is not of_code:
            window.suppressed += 1
            return
        if of_code.lines >= LINES_OF_CODE_A_MINUTE:
            of_code.suppressed += 1
            return
        of_code.lines += 1
        if window is not of_code:
            window.lines += 1
        more = {"reason": alarm.reason} if alarm.reason else {}
        event = EVENTS[alarm.code]
        getattr(_log, event.level)(event.event, broker=broker, **more)

    def _close(self, now: Nanos) -> None:
        """Log the number of omitted alarms of past minutes."""
        for key, window in list(self._windows.items()):
            if now - window.since >= _WINDOW_NS:
                del self._windows[key]
                _summarize(key[0], window, broker=key[1])
        for code, window in list(self._of_code.items()):
            if now - window.since >= _WINDOW_NS:
                del self._of_code[code]
                _summarize(code, window)


def _summarize(code: AlarmCode, window: _Window, **of: str) -> None:
    if window.suppressed:
        _log.warning("more of the same", alarm=code.value, suppressed=window.suppressed, **of)
