"""The only real clock of the daemon.

Law: nothing else in rgd reads the time; what needs it is given a `Clock`.
"""

import time
from collections.abc import Callable
from typing import Protocol, cast

from rgd.core.units import Nanos


class Clock(Protocol):
    """What time it is."""

    def now(self) -> Nanos:
        """Monotonic nanoseconds; never jumps, means nothing outside this process."""

    def unix_ms(self) -> int:
        """Milliseconds since 1970 for records; may jump."""


class SystemClock:
    """The machine's clocks."""

    #: Monotonic nanoseconds. The library's own function: each decision asks for the time.
    now = staticmethod(cast("Callable[[], Nanos]", time.monotonic_ns))

    def unix_ms(self) -> int:
        """Wall clock milliseconds."""
        return time.time_ns() // 1_000_000
