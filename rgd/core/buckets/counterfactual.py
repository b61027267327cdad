"""What a level would have granted a group, had the group refused nothing.

Why: a refusal is demand for a group only as far as all other levels would have
granted it (design 3). The present state of their buckets does not tell: while
the group refuses, nothing is taken from a topic's bucket, so it looks full for
ever. So each other level keeps a counterfactual pair of buckets for the group:
the same buckets, from which the refused work is taken as well.

A counterfactual bucket is kept as what is missing from it against the real one, which is exact:
charges to both change nothing; a charge to the counterfactual one alone adds to it; tokens that the
real bucket spills, because it is full, fill the counterfactual one. Nothing is computed where nothing
is refused, so a grant costs no more.

That of another group flows at `max(share, quota / live brokers)`: at its share two groups of a chain
would wait for each other, each small because the other is.
"""

from typing import Final

from rgd.core.buckets.bucket import PICO
from rgd.core.units import COUNT_MAX, Milli, Nanos

#: Most groups that a level has counterfactual buckets for; they start afresh when there are more.
COUNTERFACTUALS_MAX: Final = 100_000


class Counterfactual:
    """The buckets of one level as they would be if more were taken from them; [messages, bytes]."""

    __slots__ = ("at", "missing", "spilled")

    def __init__(self, spilled: list[int], now: Nanos) -> None:
        self.at = now
        self.missing = [0, 0]
        self.spilled = spilled.copy()

    def available(  # noqa: PLR0913, PLR0917 -- the fields of one bucket
        self,
        which: int,
        rate: Milli,
        flowing: Milli,
        tokens: int,
        spilled: int,
        burst_ns: int,
        now: Nanos,
    ) -> int:
        """Whole units that one bucket would grant at `rate`, which is no less than what flows.

        `COUNT_MAX` from a full one, which grants any request, on debt; 0 at rate 0.
        """
        depth, faster = rate * burst_ns, rate - flowing
        missing = self.missing[which] - (spilled - self.spilled[which]) - faster * (now - self.at)
        self.missing[which] = missing = max(missing, tokens - depth if faster else 0)
        self.spilled[which] = spilled
        left = tokens - missing
        if left >= depth:
            return COUNT_MAX if rate else 0
        return max(0, left // PICO)

    def take(self, messages: int, size: int) -> None:
        """Take units that the group refused and this level would have granted."""
        self.missing[0] += messages * PICO
        self.missing[1] += size * PICO
