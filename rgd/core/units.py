"""Numbers: fixed point rates, nanoseconds, kinds and dimensions.

Law: a rate is an `int` in thousandths of a unit per second, so shares add up
exactly on every broker. Floats are used at the border only (HTTP, YAML, metrics).
Time is an `int` of nanoseconds on a monotonic clock that the caller read.

The bounds of all numbers are here. Python's integers have no bound, but numpy's columns have one.
Every number is bounded before it enters a column (`rgd.core.demand.marks`), a message or a record,
because numpy raises on some numbers that are too large and wraps others silently.
"""

from enum import StrEnum
from typing import Final, NamedTuple, NewType

#: Nanoseconds of a monotonic clock; only differences are meaningful.
Nanos = NewType("Nanos", int)

#: Thousandths of a message or byte (per second, if it is a rate).
Milli = int

#: Fixed point: `Milli` per message or byte.
MILLI: Final = 1000
NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000

#: A quota above this many units a second counts as unlimited:
#: times 1000 it still fits an int64.
QUOTA_MAX: Final = 9_000_000_000_000_000

#: Largest advertised rate, Milli per second. Without a limit a caller may request any amount, and
#: the sum of two of these still fits 64 bits.
RATE_MAX: Final = 1 << 62

#: Most messages or bytes that one request or counter may name (int64).
COUNT_MAX: Final = (1 << 63) - 1

#: Longest advertised wait, ms: 292 years, the most whose nanoseconds fit an int64.
WAIT_MS_MAX: Final = COUNT_MAX // NS_PER_MS


class Kind(StrEnum):
    """The direction of the traffic."""

    PUBLISH = "publish"
    DISPATCH = "dispatch"


class Dimension(StrEnum):
    """The quantity that is counted."""

    MESSAGES = "messages"
    BYTES = "bytes"


class Pair(NamedTuple):
    """An amount or rate in both dimensions; its owner states the unit."""

    messages: int = 0
    bytes: int = 0


def to_milli(units: float) -> Milli:
    """Convert units to fixed point, rounding to the nearest."""
    return round(units * MILLI)


def to_units(milli: Milli) -> float:
    """Convert fixed point to units for people."""
    return milli / MILLI
