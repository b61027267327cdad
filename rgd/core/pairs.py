"""Columns of pairs, messages and bytes: numpy takes ten times as long along an axis of two."""

import numpy as np
from numpy.typing import NDArray


def either(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[rows] whether the flag of messages or that of bytes is set, of [rows, 2]."""
    found: NDArray[np.bool_] = flags[:, 0] | flags[:, 1]
    return found
