"""Whether what is published on a topic also comes back from it.

Law: `is_overdue` becomes true only if nothing of ours was read back for the patience, although
something was published all that time ago. It never becomes true for want of publishing, for a constant
delay (words then come back all the time), or because this process stood still.
Why: producer and reader of one client reconnect each by itself, so sends that are answered do not show
that anything is read (`docs/decisions/0019-sessions-are-opened-again.md`).
How: published payloads wait by their hash, in order; one that is read back also clears the older ones,
because an exchange may lose messages. Reading is told from any thread, the rest from one.
"""

import threading
from typing import Final

#: Payloads that wait to be read back; of more, the newest are forgotten: the oldest decide.
WAITING_MAX: Final = 256
#: Between two looks of the caller nothing longer passes, unless the process stood still.
STANDSTILL_S: Final = 1.0


class EchoWatch:
    """Compares what was published with what is read.

    Args:
        patience_s: how long nothing may come back, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._waiting: dict[int, float] = {}  # by the payload's hash: when it was published
        #: The patience begins here, or when the oldest payload that waits was published.
        self._since_s = 0.0
        self._looked_at_s: float | None = None
        self._counted = 0
        #: Messages of ours that were read back, ever.
        self.read_back = 0

    def published(self, payload: bytes, now_s: float) -> None:
        """Something goes out; `now_s` is of any monotonic clock, always the same one."""
        with self._lock:
            if len(self._waiting) < WAITING_MAX:
                self._waiting.setdefault(hash(payload), now_s)

    def received(self, payload: bytes) -> None:
        """Something came in, of ours or not; from any thread."""
        with self._lock:
            if hash(payload) not in self._waiting:
                return
            self.read_back += 1
            for waiting in list(self._waiting):
                del self._waiting[waiting]
                if waiting == hash(payload):
                    return

    def is_overdue(self, now_s: float) -> bool:
        """Whether nothing came back for too long; look several times a second."""
        stood_still = self._looked_at_s is None or now_s - self._looked_at_s > STANDSTILL_S
        self._looked_at_s = now_s
        with self._lock:
            if stood_still or self._counted != self.read_back:
                self._counted = self.read_back
                self._since_s = now_s
            oldest_s = next(iter(self._waiting.values()), now_s)
        return now_s - max(oldest_s, self._since_s) > self._patience_s

    def restart(self) -> None:
        """Another session: what went out before is not waited for."""
        with self._lock:
            self._waiting.clear()
