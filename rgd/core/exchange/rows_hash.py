"""A hash of rows that lets a receiver detect cheaply that it missed something.

Law: the hash of rows is the sum of their hashes, so their order does not matter, and a
change costs only the rows that changed. Totals are left out, because they change while a
row is held back as unchanged. The hash guards against loss, not against malice.

The mixing is that of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014, figure 17).
"""

from typing import Final

import numpy as np

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import Hashes

#: Hashes are sent as 63 bits.
HASH_MASK: Final = (1 << 63) - 1

# Arrays of one number, because numpy processes them twice as fast as its own scalars.
_GAMMA: Final = np.array(0x9E3779B97F4A7C15, np.uint64)
_STEPS: Final = (
    (np.array(30, np.uint64), np.array(0xBF58476D1CE4E5B9, np.uint64)),
    (np.array(27, np.uint64), np.array(0x94D049BB133111EB, np.uint64)),
)
_LAST_SHIFT: Final = np.array(31, np.uint64)


def row_hashes(keys: Hashes, topics: Ints, rates: Ints) -> Hashes:
    """[rows] hashes of rows.

    Args:
        keys: [rows] hashes of group and kind.
        topics: [rows].
        rates: [4, rows] Milli per second: admitted messages and bytes, wanted messages and bytes.
    """
    hashes = _mixed(keys ^ topics.view(np.uint64))
    for column in rates.view(np.uint64):
        hashes = _mixed((hashes + _GAMMA) ^ column)
    return hashes


def _mixed(values: Hashes) -> Hashes:
    for shift, factor in _STEPS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST_SHIFT)
