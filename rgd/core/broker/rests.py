"""When the next slice of shares may be computed: after a rest in proportion to what was computed."""

from typing import Final

from rgd.core.units import Nanos

#: Rows of the usage map that one slice computes: under 2 ms of one core. In slices of 1,000 rows,
#: each row costs half as much again.
SLICE_ROWS: Final = 2_000

#: What the calls of a slice cost, in rows. After some small slices, reports are processed together.
SLICE_COST_ROWS: Final = 400

#: Rest after each computed row, in nanoseconds: recomputing takes at most about a third of a core.
REST_NS: Final = 1_000


class Rests:
    """Law: up to `SLICE_ROWS` rows are computed ahead of their rests, so a little work is done at once."""

    def __init__(self) -> None:
        self._rested_at = Nanos(0)
        #: When the next slice may be computed.
        self.work_from = Nanos(0)

    def add(self, rows: int, now: Nanos) -> None:
        """Note a slice of so many rows."""
        rested_at = max(self._rested_at, now) + (rows + SLICE_COST_ROWS) * REST_NS
        self._rested_at = Nanos(rested_at)
        self.work_from = Nanos(rested_at - SLICE_ROWS * REST_NS)
