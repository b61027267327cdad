"""Indexes into columns; adjacent ones are converted to a slice, which copies nothing.

Rows are mostly requested in the order in which they were added, so their indexes are mostly
adjacent. Numpy then reads and writes the columns directly, at a tenth of the cost of an index
array.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Row numbers of a column, as an index array or as a slice.
Places = NDArray[np.int64] | slice


def run_of(places: NDArray[np.int64]) -> Places:
    """The same indexes in the same order; a slice if each is one more than the one before."""
    count = len(places)
    if count == 0 or places[-1] - places[0] != count - 1 or (np.diff(places) != 1).any():
        return places
    first = int(places[0])
    return slice(first, first + count)


#: Rows for which arrays have room that grow with the groups in use. Room is zeros that the system maps when they are
#: first written, so it costs nothing before, while copying 65,000 wide rows holds requests up for 165 ms.
CAPACITIES: Final = (1 << 12, 1 << 17, 1 << 20)


def capacity_for(count: int) -> int:
    """Rows to allocate where at least `count` are needed, so that growth seldom copies."""
    return next((size for size in CAPACITIES if size >= count), count * 3 // 2)
