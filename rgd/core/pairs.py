"""Columns of pairs, messages and bytes, and places in columns."""

import numpy as np
from numpy.typing import NDArray

#: Rows of a column, as an index array or as a slice.
Places = NDArray[np.int64] | slice


def either(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[rows] whether the flag of messages or that of bytes is set, of [rows, 2]."""
    # Numpy takes ten times as long along an axis of two.
    found: NDArray[np.bool_] = flags[:, 0] | flags[:, 1]
    return found
