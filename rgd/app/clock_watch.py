"""How far the clocks of stock brokers are from this machine's.

Law: an estimate is of a broker's last `KEPT` reports, and of at most `BROKERS_MAX` brokers: of more, those
that reported last.
Why: a stock broker ignores reports whose publish time is more than two of its periods behind its own clock,
and publish times are the sender's. So a clock that is off ends the exchange without any error here.
How: a report arrives later than it was published, so the least late of the last ones shows the clocks best.
"""

from collections import deque
from typing import Final

#: Reports of one broker that count.
KEPT: Final = 8
BROKERS_MAX: Final = 1000


class ClockWatch:
    """The clocks of the brokers that messages came from."""

    def __init__(self) -> None:
        self._ahead_ms: dict[str, deque[int]] = {}

    def heard(self, broker: str, published_ms: int, now_ms: int) -> None:
        """Note a report: when it was published by its sender's clock, and when it came by ours."""
        if published_ms <= 0:
            return
        # Whoever sent last is last in the order.
        ahead_ms = self._ahead_ms.pop(broker, None) or deque(maxlen=KEPT)
        ahead_ms.append(published_ms - now_ms)
        self._ahead_ms[broker] = ahead_ms
        if len(self._ahead_ms) > BROKERS_MAX:
            del self._ahead_ms[next(iter(self._ahead_ms))]

    def forget(self, brokers: frozenset[str]) -> None:
        """Forget brokers that have left."""
        for broker in brokers & self._ahead_ms.keys():
            del self._ahead_ms[broker]

    def ahead_s(self) -> dict[str, float]:
        """How far each broker's clock is ahead of ours, in seconds; below 0: behind."""
        return {broker: max(ahead_ms) / 1000 for broker, ahead_ms in self._ahead_ms.items()}
