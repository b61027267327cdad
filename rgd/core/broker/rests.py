"""When the next slice of shares may be computed: after a rest in proportion to what was computed."""

from rgd.core.bounds import SharingBounds
from rgd.core.units import Nanos


class Rests:
    """Law: up to `SharingBounds.slice_rows` rows are computed ahead of their rests, so a little work is done at once."""

    def __init__(self, bounds: SharingBounds) -> None:
        self._bounds = bounds
        self._rested_at = Nanos(0)
        #: When the next slice may be computed.
        self.work_from = Nanos(0)

    def add(self, rows: int, now: Nanos) -> None:
        """Note a slice of so many rows."""
        bounds = self._bounds
        rested_at = max(self._rested_at, now) + (rows + bounds.slice_cost_rows) * bounds.rest_ns
        self._rested_at = Nanos(rested_at)
        self.work_from = Nanos(rested_at - bounds.slice_rows * bounds.rest_ns)
