"""Messages that wait to be sent, oldest first.

Law: it is bounded, and what it drops is counted. It drops the oldest of a full queue, and what is outdated:
a message that waited for `outdated_s` while a later one of its kind waits.
Why: reports are absolute, so later ones repeat what an outdated one says, and its gap is repaired by asking. After an outage
a queue of old reports would be sent first, and only a recent message that comes back ends the isolation
(`rgd.core.broker.link`): one of 100 reports delayed the return by 3 rounds.
"""

import math
from collections import Counter, deque
from typing import Final, Generic, TypeVar

#: The reasons of drops: too many messages waited; a later one of its kind waited for too long a time.
FULL: Final = "outbox"
OUTDATED: Final = "outdated"

M = TypeVar("M")


class Outbox(Generic[M]):
    """A bounded queue; `now_s` is of any monotonic clock, always the same one.

    Args:
        size_max: most messages that wait.
        outdated_s: age, in seconds, from which a message gives way to later ones of its kind.
    """

    def __init__(self, size_max: int, outdated_s: float = math.inf) -> None:
        self._outdated_s = outdated_s
        self._waiting: deque[tuple[M, float]] = deque(maxlen=size_max)
        #: How many messages of each kind wait.
        self._kinds: Counter[type[M]] = Counter()
        #: Dropped messages, by reason.
        self.dropped: Counter[str] = Counter()

    def put(self, message: M, now_s: float) -> None:
        """Queue a message, in place of the oldest where there is no room."""
        if len(self._waiting) == self._waiting.maxlen:
            self._pop()
            self.dropped[FULL] += 1
        self._waiting.append((message, now_s))
        self._kinds[type(message)] += 1

    def take(self, now_s: float) -> M | None:
        """The next message to send; None where none waits."""
        outdated_since_s = now_s - self._outdated_s
        while self._waiting:
            message, posted_s = self._pop()
            if posted_s > outdated_since_s or not self._kinds[type(message)]:
                return message
            self.dropped[OUTDATED] += 1
        return None

    def _pop(self) -> tuple[M, float]:
        message, posted_s = self._waiting.popleft()
        self._kinds[type(message)] -= 1
        return message, posted_s
