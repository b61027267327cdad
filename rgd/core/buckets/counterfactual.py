"""What a level would have granted a group if the group had refused nothing.

A refusal is demand for a group only as far as all other levels would have
granted it (docs/decisions/0012). The present state of their buckets does not show this:
while the group refuses, nothing is taken from a topic's bucket, so that bucket
always looks full. Each other level therefore keeps a counterfactual pair of buckets for
the group: the same buckets, from which the refused work is taken as well.

A counterfactual bucket is stored as its exact difference from the real bucket. Charges to both
leave the difference unchanged. A charge to the counterfactual bucket alone increases it. Tokens
that the real bucket spills because it is full decrease it. Nothing is computed unless something is
refused, so a grant costs no more.

The counterfactual bucket of another group flows at `max(share, quota / live brokers)`. At its
share, two groups of a chain could block each other: each would stay small because the other is
small.
"""

from rgd.core.buckets.bucket import PICO
from rgd.core.units import COUNT_MAX, Milli, Nanos


class Counterfactual:
    """The buckets of one level as if more had been taken from them; lists are [messages, bytes]."""

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
        """Whole units that one bucket would grant at `rate`, at least the real rate `flowing`.

        A full bucket gives `COUNT_MAX`, because it grants any request by going into debt; at rate 0
        it gives 0.
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
        """Take units that the group refused and that this level would have granted."""
        self.missing[0] += messages * PICO
        self.missing[1] += size * PICO
