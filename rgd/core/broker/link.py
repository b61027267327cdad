"""Whether this broker's own messages come back from the exchange, and after what delay.

Law: a broker relies on the exchange only while it receives its own messages. It is isolated if a
message has not come back for longer than its patience, a round and `damping_max_ns`, whatever the
client library reports.

The usage maps of the brokers may differ for about as long as this delay, so increases wait for at
least `damping_ns` (law 6).
"""

from collections import deque
from typing import Final

from rgd.core.units import Nanos

#: Delays that are remembered; their largest is about the p99.
DELAYS_MAX: Final = 100

#: Most messages that were sent and did not come back yet that are remembered.
UNCONFIRMED_MAX: Final = 100


class Link:
    """Follows the sequence numbers of this broker's own reports; 0 is its hello.

    Args:
        patience_ns: a message that takes longer than this to come back counts as missing, in
            nanoseconds.
        damping_max_ns: a message that takes longer than this is late, and the largest `damping_ns`.
    """

    def __init__(self, patience_ns: int, damping_max_ns: int) -> None:
        self._patience_ns = patience_ns
        self._damping_max_ns = damping_max_ns
        self._unconfirmed: deque[tuple[int, Nanos]] = deque()
        self._delays_ns: deque[int] = deque(maxlen=DELAYS_MAX)
        #: The least wait of an increase, nanoseconds: about the p99 until a message comes back.
        self.damping_ns = damping_max_ns
        #: When the first message came back; None: the exchange was never reached.
        self.reached_at: Nanos | None = None
        #: When the last message came back.
        self.received_at: Nanos | None = None

    def sent(self, sequence: int, now: Nanos) -> None:
        """Note that a message was handed to the exchange."""
        if len(self._unconfirmed) == UNCONFIRMED_MAX:
            # The oldest says since when the exchange is silent, the newest that it is reachable again.
            self._unconfirmed.pop()
        self._unconfirmed.append((sequence, now))

    def received(self, sequence: int, now: Nanos) -> bool:
        """Note that a message came back; earlier ones that did not are lost.

        Returns:
            Whether it proves that the exchange is reachable: it was sent within the patience, or is
            the first that ever came back. Old messages that a delayed link delivers prove nothing.
        """
        is_recent = self.reached_at is None
        if self.reached_at is None:
            self.reached_at = now
        self.received_at = now
        while self._unconfirmed and self._unconfirmed[0][0] <= sequence:
            last, sent_at = self._unconfirmed.popleft()
            if last == sequence:
                self._delays_ns.append(now - sent_at)
                self.damping_ns = min(self._damping_max_ns, max(self._delays_ns))
                is_recent |= now - sent_at < self._patience_ns
        return is_recent

    @property
    def silent_at(self) -> Nanos | None:
        """When the oldest unconfirmed message exceeds the patience; None: none is unconfirmed."""
        return Nanos(self._unconfirmed[0][1] + self._patience_ns) if self._unconfirmed else None

    def is_silent(self, now: Nanos) -> bool:
        """Whether a message exceeds the patience at `now`, if none comes back until then."""
        return self.silent_at is not None and now >= self.silent_at

    def is_late(self, now: Nanos) -> bool:
        """Whether a message has taken longer than `damping_max_ns`, but may still come back."""
        return bool(self._unconfirmed) and now - self._unconfirmed[0][1] >= self._damping_max_ns

    def restart(self, now: Nanos) -> None:
        """Forget the unconfirmed messages, because the exchange was reached again."""
        self._unconfirmed.clear()
        self.reached_at = now
