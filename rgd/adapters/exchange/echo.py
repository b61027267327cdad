"""Checks that messages published on a topic are also read back from it.

Law: `is_overdue` becomes true only if none of our messages was read back for the patience, although
one was published at least that long ago. It never becomes true without publishing, for a constant
delay (messages then still come back), or because this process stood still.
Why: producer and reader of one client reconnect independently, so acknowledged sends do not prove
that anything is read (`docs/decisions/0019-sessions-are-opened-again.md`).
How: published payloads wait by their hash, in order. One that is read back also clears the older ones,
because an exchange may lose messages. Any thread may report a read; one thread does the rest.
"""

import threading
from typing import Final

#: Most payloads that wait to be read back; beyond that the newest are ignored, because the oldest decide.
WAITING_MAX: Final = 256
#: Longest time between two checks of the caller, unless the process stood still.
STANDSTILL_S: Final = 1.0


class EchoWatch:
    """Compares published messages with read ones.

    Args:
        patience_s: longest time without a message coming back, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._waiting: dict[int, float] = {}  # by the payload's hash: when it was published
        #: The patience begins here, or when the oldest waiting payload was published.
        self._since_s = 0.0
        self._looked_at_s: float | None = None
        self._counted = 0
        #: Messages of ours that were read back, ever.
        self.read_back = 0

    def published(self, payload: bytes, now_s: float) -> None:
        """Note a published payload; `now_s` is of any monotonic clock, always the same one."""
        with self._lock:
            if len(self._waiting) < WAITING_MAX:
                self._waiting.setdefault(hash(payload), now_s)

    def received(self, payload: bytes) -> None:
        """Note a read payload, ours or not; from any thread."""
        with self._lock:
            if hash(payload) not in self._waiting:
                return
            self.read_back += 1
            for waiting in list(self._waiting):
                del self._waiting[waiting]
                if waiting == hash(payload):
                    return

    def is_overdue(self, now_s: float) -> bool:
        """Whether no message came back for too long; call it several times a second."""
        stood_still = self._looked_at_s is None or now_s - self._looked_at_s > STANDSTILL_S
        self._looked_at_s = now_s
        with self._lock:
            if stood_still or self._counted != self.read_back:
                self._counted = self.read_back
                self._since_s = now_s
            oldest_s = next(iter(self._waiting.values()), now_s)
        return now_s - max(oldest_s, self._since_s) > self._patience_s

    def restart(self) -> None:
        """Begin with another session, without waiting for earlier messages."""
        with self._lock:
            self._waiting.clear()
