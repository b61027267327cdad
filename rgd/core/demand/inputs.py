"""What the estimator is given of some meters' figures: columns, each number within its bound.

Law: whatever callers asked and clocks showed, every amount is 0 to `RATE_MAX`, every time 1 to
`ELAPSED_MAX` and every count 0 to `COUNT_MAX`, and nothing but an unknown noise is NaN. So no sum or
product in `rgd.core.demand.estimator` overflows. Meters bound what they say too; this is the one door
through which it goes into columns.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.estimator import Flags, Floats, Seen
from rgd.core.demand.measured import Measured
from rgd.core.units import COUNT_MAX, ELAPSED_MAX, RATE_MAX


def seen_of(measured: Sequence[Measured], hungry: Flags) -> Seen:
    """What the meters of some rows showed, as the estimator takes it.

    Args:
        measured: one for each row.
        hungry: [rows] whether the group as a whole is short.
    """
    return Seen(
        offered=_rates([one.offered for one in measured]),
        requests=_whole([one.requests for one in measured], 0, COUNT_MAX),
        elapsed_ns=_whole([one.elapsed_ns for one in measured], 1, ELAPSED_MAX),
        refused=np.array([one.refused for one in measured], np.bool_),
        hungry=hungry,
        held=_rates([one.held for one in measured]),
        slot_noise=_rates([one.slot_noise for one in measured]),
        settled=_rates([one.settled or one.offered for one in measured]),
    )


def _rates(pairs: Iterable[tuple[float, float]]) -> Floats:
    """[rows, 2] of amounts per second; NaN stays."""
    # Python's integers have no bound, but any that a meter can reach is a double.
    flat = np.fromiter(chain.from_iterable(pairs), np.float64)
    bounded: Floats = np.clip(flat, 0.0, float(RATE_MAX), out=flat)
    return bounded.reshape(-1, 2)


def _whole(numbers: Iterable[int], least: int, most: int) -> NDArray[np.int64]:
    """[rows] of whole numbers."""
    return np.array([min(max(number, least), most) for number in numbers], np.int64)
