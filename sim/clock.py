"""A member's own monotonic clock, beside the world's.

Law: it never runs backwards, and `world_time` is the first moment at which `local_time` is reached:
`local_time(world_time(t)) >= t > local_time(world_time(t) - 1)`.

It differs from the world's by an offset (machines start at different times) and by a drift (quartz:
up to 1e-3). A jump of the wall clock is not in here: no brain is ever told the wall clock.
"""

from typing import Final

from rgd.core.units import Nanos

_PPB: Final = 1_000_000_000

#: Largest drift either way, in billionths: a thousandth, ten times worse than any quartz.
DRIFT_PPB_MAX: Final = 1_000_000


class Clock:
    """What a member reads when the world's clock says something else."""

    __slots__ = ("_drift_ppb", "_offset_ns")

    def __init__(self, *, offset_ns: int = 0, drift_ppb: int = 0) -> None:
        assert abs(drift_ppb) <= DRIFT_PPB_MAX, "no clock is that bad"
        self._offset_ns = offset_ns
        self._drift_ppb = drift_ppb

    def local_time(self, now: int) -> Nanos:
        """What the member reads at a moment of the world."""
        if self._drift_ppb == 0:
            return Nanos(now + self._offset_ns)
        return Nanos(now + self._offset_ns + now * self._drift_ppb // _PPB)

    def world_time(self, local: int) -> int:
        """The first moment of the world at which the member reads `local` or more."""
        since = local - self._offset_ns
        if self._drift_ppb == 0:
            return since
        moment = since * _PPB // (_PPB + self._drift_ppb)
        while self.local_time(moment) >= local:
            moment -= 1
        while self.local_time(moment) < local:
            moment += 1
        return moment
