"""Logs the core's alarms at a bounded rate.

Law: at most `LINES_A_MINUTE` lines a minute are written for one alarm, whatever the peers do. Omitted alarms are
counted. The next line of the kind reports the count, or the next line of any kind after the minute.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from rgd.app.events import EVENTS
from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.units import NS_PER_S, Nanos

#: Lines of one alarm in a minute, of all brokers together.
LINES_A_MINUTE: Final = 30

_WINDOW_NS: Final = 60 * NS_PER_S

_log = structlog.get_logger("rgd.daemon")


@dataclass(slots=True)
class _Window:
    """A minute of one alarm."""

    since: Nanos
    alarms: int = 0


class AlarmLog:
    """Writes alarms of a daemon whose broker has this name."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._windows: dict[AlarmCode, _Window] = {}

    def tell(self, alarm: Alarm, now: Nanos) -> None:
        """Write an alarm, or count it."""
        self._close(now)
        window = self._windows.setdefault(alarm.code, _Window(now))
        window.alarms += 1
        if window.alarms > LINES_A_MINUTE:
            return
        more = {"reason": alarm.reason} if alarm.reason else {}
        event = EVENTS[alarm.code]
        getattr(_log, event.level)(event.event, broker=alarm.broker or self._broker, **more)

    def _close(self, now: Nanos) -> None:
        """Log the number of omitted alarms of past minutes."""
        for code, window in list(self._windows.items()):
            if now - window.since < _WINDOW_NS:
                continue
            del self._windows[code]
            omitted = window.alarms - LINES_A_MINUTE
            if omitted > 0:
                _log.warning("more of the same", alarm=code.value, suppressed=omitted)
