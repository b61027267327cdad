"""A pair of token buckets with debt, messages and bytes, exact in integers.

Law (design 2): under any interleaving of takes and rate changes, a bucket
grants at most its depth + the integral of its rate + one request.

Tokens are counted in thousandths of a billionth of a unit (`PICO` to the
unit): a rate in Milli per second times nanoseconds, so nothing is rounded and
the law holds to the digit. A request larger than the depth is granted when the
bucket is full and leaves a debt; at rate 0 never. When the rate changes, tokens
above the new depth are spilled and debt stays: there is no free burst.

Both buckets are plain fields of one object, because each method call and each object more costs the
fast path a tenth of a decision.
"""

from typing import Final

from rgd.core.policies.model import UNLIMITED, Rate, Rates
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S, Dimension, Nanos

#: Tokens of one unit: a Milli per second, for a nanosecond, is one token.
PICO: Final = MILLI * NS_PER_S

#: Before all time.
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
        #: When the tokens were last counted.
        self.at = now
        #: Depth as time at the rate; in force with the next `flow`.
        self.burst_ns = burst_ns
        #: The rates in force.
        self.share: Rates = UNLIMITED
        self.messages_rate: Rate = None
        self.bytes_rate: Rate = None
        self.messages_depth = self.messages_tokens = 0
        self.bytes_depth = self.bytes_tokens = 0
        #: Until when a cost of so many tokens is refused, if nothing is taken meanwhile, and which bucket
        #: is short of them: a caller that is refused mostly asks for the same again.
        self.short_until = NEVER
        self.short_messages = self.short_bytes = 0
        self.short_of = Dimension.MESSAGES
        #: [messages, bytes] tokens lost because a bucket was full; counted while a counterfactual
        #: bucket needs them.
        self.spilled: list[int] | None = None

    def admits(self, messages: int, size: int, now: Nanos) -> bool:
        """Whether a cost in tokens would be granted now, whole in both dimensions.

        Where not, and `short_until` is yet to come, that is when it would be.
        """
        if now < self.short_until and messages == self.short_messages and size == self.short_bytes:
            return False
        elapsed = now - self.at
        if elapsed > 0 and self.spilled is None:
            # As `refill`, without the call.
            self.at = now
            if rate := self.messages_rate:
                tokens = self.messages_tokens + elapsed * rate
                depth = self.messages_depth
                self.messages_tokens = tokens if tokens < depth else depth  # noqa: FURB136 -- min() takes thrice as long
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
        """Count the tokens as of now."""
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
        """Take units that `admits` or `available` promised at the same moment; may leave debt."""
        self.messages_tokens -= messages * PICO
        self.bytes_tokens -= size * PICO
        self.short_until = NEVER

    def available(self, now: Nanos) -> tuple[int, int]:
        """Whole units that a caller who accepts a part may take; at least 1 from a full bucket."""
        self.refill(now)
        return (
            _available(self.messages_rate, self.messages_tokens, self.messages_depth),
            _available(self.bytes_rate, self.bytes_tokens, self.bytes_depth),
        )

    def flow(self, share: Rates, now: Nanos) -> None:
        """Flow at other rates, as deep as `burst_ns`, from now on; a new bucket starts full."""
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

    def pause(self, since: Nanos, until: Nanos) -> None:
        """Let nothing flow between two moments, as far as it is not known to have flowed."""
        self.refill(since)
        self.at = max(self.at, until)
        self.short_until = NEVER

    def tokens(self, dimension: Dimension, now: Nanos) -> int | None:
        """Tokens at hand in `PICO`; negative is debt, None is unlimited."""
        self.refill(now)
        if self.share.of(dimension) is None:
            return None
        return self.messages_tokens if dimension is Dimension.MESSAGES else self.bytes_tokens

    def remaining(self, dimension: Dimension, now: Nanos) -> int:
        """Whole units in the bucket, 0 while in debt."""
        return max(0, self.tokens(dimension, now) or 0) // PICO

    def is_full(self, now: Nanos) -> bool:
        """Whether a new pair at the same rates would grant no more."""
        self.refill(now)
        return (self.messages_rate is None or self.messages_tokens >= self.messages_depth) and (
            self.bytes_rate is None or self.bytes_tokens >= self.bytes_depth
        )

    def owes(self, now: Nanos) -> bool:
        """Whether one of them is in debt."""
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
