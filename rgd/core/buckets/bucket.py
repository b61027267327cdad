"""A pair of token buckets with debt, for messages and for bytes, in exact integers.

Law: under any interleaving of takes and rate changes, a bucket
grants at most its depth + the integral of its rate + one request.

A token is 1 / `PICO` of a unit: a rate in Milli per second times a time in
nanoseconds gives tokens. Nothing is rounded, so the law holds exactly. A full
bucket grants a request larger than its depth and goes into debt; at rate 0 it
never does. When the rate changes, the bucket spills tokens above its new depth
and keeps its debt, so there is no free burst.

Both buckets are fields of one object, because each additional method call or object costs the
fast path a tenth of a decision.
"""

from typing import Final

from rgd.core.policies.model import UNLIMITED, Rate, Rates
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S, Dimension, Nanos

#: Tokens per unit: one Milli per second gives one token per nanosecond.
PICO: Final = MILLI * NS_PER_S

#: Earlier than any other time.
NEVER: Final = Nanos(-(1 << 63))


class Buckets:
    """Tokens of messages and of bytes; a dimension without a rate is unlimited."""

    __slots__ = (
        "at",
        "burst_ns",
        "bytes_depth",
        "bytes_rate",
        "bytes_tokens",
        "messages_depth",
        "messages_rate",
        "messages_tokens",
        "share",
        "short_bytes",
        "short_messages",
        "short_of",
        "short_until",
        "spilled",
    )

    def __init__(self, burst_ns: int, now: Nanos) -> None:
        #: Time of the last refill.
        self.at = now
        #: Depth in nanoseconds of the present rate; a change takes effect at the next `flow`.
        self.burst_ns = burst_ns
        #: The rates in force.
        self.share: Rates = UNLIMITED
        self.messages_rate: Rate = None
        self.bytes_rate: Rate = None
        self.messages_depth = self.messages_tokens = 0
        self.bytes_depth = self.bytes_tokens = 0
        #: A cost of `short_messages` and `short_bytes` tokens is refused until this time, if
        #: nothing is taken meanwhile; `short_of` is the dimension that lacks tokens. Cached because
        #: a refused caller usually asks for the same amount again.
        self.short_until = NEVER
        self.short_messages = self.short_bytes = 0
        self.short_of = Dimension.MESSAGES
        #: [messages, bytes] tokens lost because a bucket was full; None while no counterfactual
        #: bucket needs the count.
        self.spilled: list[int] | None = None

    def admits(self, messages: int, size: int, now: Nanos) -> bool:
        """Whether both dimensions would grant a cost in tokens now.

        If not, and `short_until` is in the future, the cost is granted at `short_until`.
        """
        if now < self.short_until and messages == self.short_messages and size == self.short_bytes:
            return False
        elapsed = now - self.at
        if elapsed > 0 and self.spilled is None:
            # `refill`, inlined.
            self.at = now
            if rate := self.messages_rate:
                tokens = self.messages_tokens + elapsed * rate
                depth = self.messages_depth
                self.messages_tokens = tokens if tokens < depth else depth  # noqa: FURB136 -- min() takes three times as long
            if rate := self.bytes_rate:
                tokens = self.bytes_tokens + elapsed * rate
                depth = self.bytes_depth
                self.bytes_tokens = tokens if tokens < depth else depth  # noqa: FURB136 -- as above
        else:
            self.refill(now)
        rate = self.messages_rate
        if rate is not None and messages:
            tokens = self.messages_tokens
            if tokens < messages and not (tokens >= self.messages_depth and rate):
                self.short_until = NEVER
                return False
        rate = self.bytes_rate
        if rate is not None and size:
            tokens = self.bytes_tokens
            if tokens < size and not (tokens >= self.bytes_depth and rate):
                self.short_until = NEVER
                return False
        return True

    def refill(self, now: Nanos) -> None:
        """Add the tokens that accrued since the last refill."""
        elapsed = now - self.at
        if elapsed <= 0:
            return
        self.at = now
        if rate := self.messages_rate:
            tokens = self.messages_tokens + elapsed * rate
            if tokens > self.messages_depth:
                if self.spilled is not None:
                    self.spilled[0] += tokens - self.messages_depth
                tokens = self.messages_depth
            self.messages_tokens = tokens
        if rate := self.bytes_rate:
            tokens = self.bytes_tokens + elapsed * rate
            if tokens > self.bytes_depth:
                if self.spilled is not None:
                    self.spilled[1] += tokens - self.bytes_depth
                tokens = self.bytes_depth
            self.bytes_tokens = tokens

    def take(self, messages: int, size: int) -> None:
        """Take units that `admits` or `available` allowed at the same time; may leave debt."""
        self.messages_tokens -= messages * PICO
        self.bytes_tokens -= size * PICO
        self.short_until = NEVER

    def available(self, now: Nanos) -> tuple[int, int]:
        """Whole units for a caller that accepts a part; a full bucket has at least 1."""
        self.refill(now)
        return (
            _available(self.messages_rate, self.messages_tokens, self.messages_depth),
            _available(self.bytes_rate, self.bytes_tokens, self.bytes_depth),
        )

    def grants_any(self) -> tuple[bool, bool]:
        """By dimension, whether a request of any size was granted at the last refill: by debt."""
        return (
            self.messages_tokens >= self.messages_depth and bool(self.messages_rate),
            self.bytes_tokens >= self.bytes_depth and bool(self.bytes_rate),
        )

    def flow(self, share: Rates, now: Nanos) -> None:
        """Set new rates, with depths of `burst_ns`, from `now` on; a new bucket starts full."""
        self.refill(now)
        self.short_until = NEVER
        before, burst_ns = self.share, self.burst_ns
        if (before.messages is None) is not (share.messages is None):
            self.messages_tokens = (share.messages or 0) * burst_ns
            self.spilled = None
        if (before.bytes is None) is not (share.bytes is None):
            self.bytes_tokens = (share.bytes or 0) * burst_ns
            self.spilled = None
        self.messages_rate, self.bytes_rate = share.messages, share.bytes
        self.messages_depth = (share.messages or 0) * burst_ns
        self.bytes_depth = (share.bytes or 0) * burst_ns
        messages = max(0, self.messages_tokens - self.messages_depth)
        size = max(0, self.bytes_tokens - self.bytes_depth)
        self.messages_tokens -= messages
        self.bytes_tokens -= size
        if self.spilled is not None:
            self.spilled[0] += messages
            self.spilled[1] += size
        self.share = share

    def skip(self, until: Nanos) -> None:
        """Accrue no tokens from the last refill to `until`."""
        self.at = max(self.at, until)
        self.short_until = NEVER

    def tokens(self, dimension: Dimension, now: Nanos) -> int | None:
        """Available tokens, `PICO` to the unit; negative is debt, None is unlimited."""
        self.refill(now)
        if self.share.of(dimension) is None:
            return None
        return self.messages_tokens if dimension is Dimension.MESSAGES else self.bytes_tokens

    def remaining(self, dimension: Dimension, now: Nanos) -> int:
        """Whole units in the bucket, 0 while in debt."""
        return max(0, self.tokens(dimension, now) or 0) // PICO

    def is_full(self, now: Nanos) -> bool:
        """Whether a new pair at the same rates would grant no more than this one."""
        self.refill(now)
        return (self.messages_rate is None or self.messages_tokens >= self.messages_depth) and (
            self.bytes_rate is None or self.bytes_tokens >= self.bytes_depth
        )

    def owes(self, now: Nanos) -> bool:
        """Whether either bucket is in debt."""
        self.refill(now)
        return (self.messages_rate is not None and self.messages_tokens < 0) or (
            self.bytes_rate is not None and self.bytes_tokens < 0
        )


def _available(rate: Rate, tokens: int, depth: int) -> int:
    if rate is None:
        return COUNT_MAX
    whole = tokens // PICO
    if whole < 1:
        return 1 if rate and tokens >= depth else 0
    return whole
