"""Places in columns, and how they are read: a run of them as a slice, which copies nothing.

What is kept by place mostly comes in the order of places, for it is asked for in the order in which it
was heard of; then numpy reads and writes the columns themselves, at a tenth of what an index costs.
"""

import numpy as np
from numpy.typing import NDArray

#: Places in order: each one, or from the first to behind the last.
Places = NDArray[np.int64] | slice


def run_of(places: NDArray[np.int64]) -> Places:
    """The same places in the same order, as a slice where each is the one after the one before."""
    count = len(places)
    if count == 0 or places[-1] - places[0] != count - 1 or (np.diff(places) != 1).any():
        return places
    first = int(places[0])
    return slice(first, first + count)
