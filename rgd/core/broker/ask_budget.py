"""How many peers are asked for what was missed in one round.

Law: at most `ASKS_A_ROUND` asks to single brokers are sent in a round, whatever members claim. A broker that had to wait
gets at least one of the next round, up to so many of them in the order of their waits. So members that somebody made up
delay the asks to real ones, and do not prevent them.
Why: each of 1,000 made-up members can claim that reports of each of 64 shards are missing, and the outbox keeps 256 messages:
the asks would push out this broker's reports and heartbeats.
An ask of a shard that goes to all members is not counted: there are at most as many as shards.
"""

from itertools import islice
from typing import Final

from rgd.core.units import Nanos

#: Half of what may wait to be sent (`rgd.app.traffic.OUTBOX_MAX`).
ASKS_A_ROUND: Final = 128


class AskBudget:
    """The asks of one broker to others.

    Args:
        round_ns: length of a round.
    """

    def __init__(self, round_ns: int) -> None:
        self._round_ns = round_ns
        self._ends_at = Nanos(0)
        self._left = ASKS_A_ROUND
        #: The brokers that have to wait, in order, and those of them for which an ask is kept in this round.
        self._waiting: dict[str, None] = {}
        self._kept: set[str] = set()

    def take(self, broker: str, now: Nanos) -> bool:
        """Whether this broker may be asked now; then it counts as asked."""
        if now >= self._ends_at:
            self._ends_at = Nanos(now + self._round_ns)
            self._left = ASKS_A_ROUND
            self._kept = set(islice(self._waiting, ASKS_A_ROUND))
        if broker not in self._kept and self._left <= len(self._kept):
            self._waiting.setdefault(broker)
            return False
        self._left -= 1
        self._kept.discard(broker)
        self._waiting.pop(broker, None)
        return True

    def forget(self, broker: str) -> None:
        """Forget a broker that left."""
        self._waiting.pop(broker, None)
        self._kept.discard(broker)
