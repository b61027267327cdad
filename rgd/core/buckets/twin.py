"""What a level would have granted a group, had the group not refused.

Why: a refusal counts for a group only for what all other levels would have
granted (design 3). Looking at their buckets at the moment does not tell: when
the group refuses, nothing is taken from a topic's bucket, so it looks full for
ever. So each other level has a twin for the group: the same bucket, from which
the refused work is taken as well.

A twin is kept as what is missing from it against the real bucket, which is exact:
charges to both change nothing; a charge to the twin alone adds to it; tokens that
the real bucket spills, because it is full, fill the twin up. Nothing is reckoned
where nothing is refused, so the road of what is granted costs no more.

The twin of another group flows at `max(share, quota / live brokers)`: at its share
two groups of a chain would wait for each other, each small because the other is.
"""

from typing import Final

from rgd.core.buckets.bucket import PICO, TokenBucket
from rgd.core.units import COUNT_MAX, Milli, Nanos

#: Most groups that a level has twins for; they start afresh when there are more.
TWINS_MAX: Final = 100_000


class WatchedBucket(TokenBucket):
    """A bucket that adds up what it spills."""

    __slots__ = ("spilled",)

    @classmethod
    def of(cls, bucket: TokenBucket, burst_ns: int, now: Nanos) -> "WatchedBucket":
        """The same bucket, of the same depth, watched from now on."""
        if isinstance(bucket, cls):
            return bucket
        watched = cls(bucket.rate, burst_ns, now)
        watched.take(watched.tokens(now) - bucket.tokens(now))
        return watched

    def __init__(self, rate: Milli, burst_ns: int, now: Nanos) -> None:
        super().__init__(rate, burst_ns, now)
        #: Tokens that flowed in while the bucket was full, or went with a lower depth.
        self.spilled = 0

    def set_rate(self, rate: Milli, burst_ns: int, now: Nanos) -> None:
        """Change rate and depth; tokens above the new depth are spilled."""
        self._refill(now)
        before = self._tokens
        super().set_rate(rate, burst_ns, now)
        self.spilled += before - self._tokens

    def _refill(self, now: Nanos) -> None:
        elapsed = now - self._at
        if elapsed > 0:
            tokens = self._tokens + elapsed * self.rate
            if tokens > self._depth:
                self.spilled += tokens - self._depth
                tokens = self._depth
            self._tokens = tokens
            self._at = now


class Twin:
    """One bucket as it would be if more were taken from it."""

    __slots__ = ("_at", "_bucket", "_missing", "_spilled")

    def __init__(self, bucket: WatchedBucket, now: Nanos) -> None:
        bucket.tokens(now)
        self._bucket = bucket
        self._missing = 0
        self._spilled = bucket.spilled
        self._at = now

    def is_of(self, bucket: TokenBucket | None) -> bool:
        """Whether that is the real bucket."""
        return self._bucket is bucket

    def available(self, rate: Milli, burst_ns: int, now: Nanos) -> int:
        """Whole units that the twin would grant, which flows at `rate` (at least the bucket's).

        `COUNT_MAX` from a full one, which grants any request, on debt; 0 at rate 0.
        """
        bucket, depth = self._bucket, rate * burst_ns
        tokens = bucket.tokens(now)
        faster = rate - bucket.rate
        missing = self._missing - (bucket.spilled - self._spilled) - faster * (now - self._at)
        self._missing = max(missing, tokens - depth if faster else 0)
        self._spilled, self._at = bucket.spilled, now
        left = tokens - self._missing
        if left >= depth:
            return COUNT_MAX if rate else 0
        return max(0, left // PICO)

    def take(self, units: int) -> None:
        """Take what the group refused and this level would have granted."""
        self._missing += units * PICO
