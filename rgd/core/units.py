"""Numbers: fixed point rates, nanoseconds, kinds and dimensions.

Law: a rate is an `int` in thousandths of a unit per second, so shares add up
exactly on every broker. Floats live at the border (HTTP, YAML, metrics) only.
Time is an `int` of nanoseconds on a monotonic clock that the caller read.

The bounds of all numbers are here. Python's integers have no largest one, but a column of numpy has:
what enters a column (`rgd.core.demand.marks`), a message or a record is
bounded by these first, because numpy raises on some that are too large and wraps the others silently.
"""

from enum import StrEnum
from typing import Final, NamedTuple, NewType

#: Nanoseconds of a monotonic clock; only differences mean anything.
Nanos = NewType("Nanos", int)

#: Thousandths of a message or byte (per second, where it is a rate).
Milli = int

#: Fixed point: how many `Milli` make one message or byte.
MILLI: Final = 1000
NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000

#: A quota above this many units a second counts as unlimited (design 3, law 1):
#: times 1000 it still fits an int64.
QUOTA_MAX: Final = 9_000_000_000_000_000

#: Largest rate that is told, Milli per second: where nothing is limited a caller may ask for any
#: amount, and two of these still add up to 64 bits.
RATE_MAX: Final = 1 << 62

#: Most messages or bytes that one request or counter may name (int64).
COUNT_MAX: Final = (1 << 63) - 1

#: Longest time over which something is counted, ns: 73 years, so that two of them fit an int64. A
#: clock that jumps further counts as having jumped so far.
ELAPSED_MAX: Final = 1 << 61

#: Longest wait that a caller is told, ms: 292 years, the most whose nanoseconds fit an int64.
WAIT_MS_MAX: Final = COUNT_MAX // NS_PER_MS


class Kind(StrEnum):
    """Which way the traffic goes."""

    PUBLISH = "publish"
    DISPATCH = "dispatch"


class Dimension(StrEnum):
    """What is counted."""

    MESSAGES = "messages"
    BYTES = "bytes"


class Pair(NamedTuple):
    """An amount or rate in both dimensions; the unit is the owner's to state."""

    messages: int = 0
    bytes: int = 0


def to_milli(units: float) -> Milli:
    """Turn units (a person's number) into fixed point, rounding to the nearest."""
    return round(units * MILLI)


def to_units(milli: Milli) -> float:
    """Turn fixed point into units for people."""
    return milli / MILLI
