"""Whether our own words come back from the exchange, and how long they take.

Law: a broker believes in the exchange only as far as it reads itself back.
What was said and not heard for longer than a round means that it is cut off,
whatever the client library thinks (design 3, the unreachable exchange).

The delay also says how long maps may differ while reports travel: raises wait
for `damping_ns` (law 6).
"""

from collections import deque
from typing import Final

from rgd.core.units import Nanos

#: Delays remembered; their largest is about the p99.
DELAYS_MAX: Final = 100

#: What was said and not yet heard is remembered for this many reports.
UNCONFIRMED_MAX: Final = 100


class Link:
    """Follows the sequence numbers of this broker's own reports; 0 is its hello."""

    def __init__(self, patience_ns: int, damping_max_ns: int) -> None:
        self._patience_ns = patience_ns
        self._settle_max_ns = damping_max_ns
        self._unconfirmed: deque[tuple[int, Nanos]] = deque(maxlen=UNCONFIRMED_MAX)
        self._delays_ns: deque[int] = deque(maxlen=DELAYS_MAX)
        #: When the first word came back; None: the exchange was never reached.
        self.reached_at: Nanos | None = None
        #: When the last word came back.
        self.received_at: Nanos | None = None

    def said(self, sequence: int, now: Nanos) -> None:
        """A report was handed to the exchange."""
        self._unconfirmed.append((sequence, now))

    def heard(self, sequence: int, now: Nanos) -> bool:
        """Our own report came back; earlier ones that did not are lost.

        Returns:
            Whether it proves the exchange to be in reach: it was sent within our patience, or is
            the first that ever came back. Old messages that a delayed link lets go prove nothing.
        """
        is_recent = self.reached_at is None
        if self.reached_at is None:
            self.reached_at = now
        self.received_at = now
        while self._unconfirmed and self._unconfirmed[0][0] <= sequence:
            last, said_at = self._unconfirmed.popleft()
            if last == sequence:
                self._delays_ns.append(now - said_at)
                is_recent |= now - said_at < self._patience_ns
        return is_recent

    @property
    def silent_at(self) -> Nanos | None:
        """From when on something we said is missing for longer than our patience."""
        return Nanos(self._unconfirmed[0][1] + self._patience_ns) if self._unconfirmed else None

    def is_silent(self, now: Nanos) -> bool:
        """Whether something is missing then, if nothing more is heard until then."""
        return self.silent_at is not None and now >= self.silent_at

    def is_late(self, now: Nanos) -> bool:
        """Whether something we said has taken longer than any should, but may still come."""
        return bool(self._unconfirmed) and now - self._unconfirmed[0][1] >= self._settle_max_ns

    @property
    def damping_ns(self) -> int:
        """How long a raise waits: about the p99 from publishing to reading back."""
        if not self._delays_ns:
            return self._settle_max_ns
        return min(self._settle_max_ns, max(self._delays_ns))

    def restart(self, now: Nanos) -> None:
        """Forget what is missing: it was reached again, and a new life of the link begins."""
        self._unconfirmed.clear()
        self.reached_at = now
