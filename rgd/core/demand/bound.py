"""How much unsaid refused work counts as new, by its slices (`rgd.core.counts.unsaid`)."""

from typing import Final

import numpy as np

from rgd.core.demand.marks import SCALE, Floats

#: Refused work is believed up to this multiple of what was advertised before.
GROWTH: Final = 4


def most_unsaid(slices: Floats, advertised: Floats, period_ns: Floats, now: Floats) -> Floats:
    """[rows, 2] the most refused work that counts in a period; none where nothing was refused.

    Args:
        slices: [rows, 8] as `UnsaidBound.numbers` gives them.
        advertised: [rows, 2] the advertised demand, Milli per second; 0 for none.
        period_ns: [rows] the periods' lengths.
        now: [rows] their ends.
    """
    last, largest, first, first_ns, end = np.split(slices, (2, 4, 6, 7), axis=1)
    period_ns = period_ns[:, None]
    largest = np.maximum(last, largest)
    first = np.where(np.isnan(first) & (now[:, None] >= end), last, first)
    of_first = np.maximum(largest, first * period_ns / np.maximum(first_ns, 1))
    # Within the first slice no caller can have retried.
    of_first[np.isnan(first)] = np.inf
    grown = np.maximum(largest, GROWTH * advertised * period_ns / SCALE)
    return np.where(first_ns > 0, np.where(advertised > 0, grown, of_first), 0)
