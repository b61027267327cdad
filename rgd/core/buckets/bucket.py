"""A token bucket with debt, exact in integers.

Law (design 2): under any interleaving of takes and changes of rate, a bucket
grants at most its depth + the integral of its rate + one request.

Tokens are counted in thousandths of a billionth of a unit (`PICO` to the
unit): a rate in Milli per second times nanoseconds, so no rounding is lost and
the law holds to the digit. A request larger than the depth is granted when the
bucket is full and leaves a debt; at rate 0 never. When the rate changes, tokens
above the new depth go and debt stays: there is no free burst.
"""

from typing import Final

from rgd.core.units import MILLI, NS_PER_S, Milli, Nanos

#: Tokens of one unit: a Milli per second, for a nanosecond, is one token.
PICO: Final = MILLI * NS_PER_S


class TokenBucket:
    """Tokens that flow in at `rate` up to a depth of `burst_ns` of that rate; starts full."""

    __slots__ = ("_at", "_depth", "_tokens", "rate")

    def __init__(self, rate: Milli, burst_ns: int, now: Nanos) -> None:
        self.rate = rate
        self._depth = self._tokens = rate * burst_ns
        self._at = now

    def admits(self, cost: int, now: Nanos) -> bool:
        """Whether `cost` tokens would be granted now."""
        if now > self._at:
            self._refill(now)
        tokens = self._tokens
        return tokens >= cost or (tokens >= self._depth and self.rate > 0)

    def take(self, cost: int) -> None:
        """Take tokens that `admits` or `available` promised at the same moment; may leave debt."""
        self._tokens -= cost

    def available(self, now: Nanos) -> int:
        """Whole units that a caller who accepts a part may take; at least 1 from a full bucket."""
        self._refill(now)
        whole = self._tokens // PICO
        if whole < 1 and self._tokens >= self._depth and self.rate > 0:
            return 1
        return max(0, whole)

    def wait_ns(self, cost: int, now: Nanos) -> int | None:
        """How long until `cost` would be granted if nobody else took any; None at rate 0: never."""
        if self.rate == 0:
            return None
        self._refill(now)
        missing = min(cost, self._depth) - self._tokens
        return -(-missing // self.rate) if missing > 0 else 0

    def set_rate(self, rate: Milli, burst_ns: int, now: Nanos) -> None:
        """Change rate and depth from now on: tokens above the new depth go, debt stays."""
        self._refill(now)
        self.rate = rate
        self._depth = rate * burst_ns
        self._tokens = min(self._tokens, self._depth)

    def pause(self, since: Nanos, until: Nanos) -> None:
        """Let nothing flow between two moments, as far as it is not known to have flowed."""
        self._refill(since)
        self._at = max(self._at, until)

    def is_full(self, now: Nanos) -> bool:
        """Whether it could not hold more."""
        self._refill(now)
        return self._tokens >= self._depth

    def tokens(self, now: Nanos) -> int:
        """Tokens at hand in `PICO`; negative is debt."""
        self._refill(now)
        return self._tokens

    def _refill(self, now: Nanos) -> None:
        elapsed = now - self._at
        if elapsed > 0:
            tokens = self._tokens + elapsed * self.rate
            self._tokens = tokens if tokens < self._depth else self._depth  # noqa: FURB136 -- min() takes thrice as long
            self._at = now
