"""What the peers believe of a meter's demand, and how far off is news to them.

Law: a slot above or below what was told by more than the estimator's threshold, by one part in
`EARLY_PART` and by one unit is a jump, worth an early report. Reckoned for many meters at once, for
the end of a round tells all of them (`rgd.core.broker.rounds`); a meter only compares.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.marks import SCALE

#: A change of less than this part of what was told waits for the round's end: one in twenty.
EARLY_PART: Final = 20

#: Where nothing was told, a slot that differs by more than this part begins a new segment.
FRESH_PART: Final = 0.5

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Expected(NamedTuple):
    """What one meter's slots are compared with; amounts are (messages, bytes)."""

    #: What is wanted here, as told, Milli per second; 0 where the peers know nothing.
    told: tuple[int, int] = (0, 0)
    #: A slot's rate above or below these is a jump, Milli per second.
    above: tuple[float, float] = (0.0, 0.0)
    below: tuple[float, float] = (0.0, 0.0)
    #: Half a round's rate that is farther off than this is one, too; a slot shows larger steps.
    half: tuple[float, float] = (0.0, 0.0)
    #: A slot that differs from those before it by more than this part begins a new segment.
    noise_part: tuple[float, float] = (FRESH_PART, FRESH_PART)
    #: Whether a slot without a request would be a change of what was told.
    is_steady: bool = False
    #: Whether the group as a whole is short, so that a fall is worth a report.
    is_hungry: bool = False


def expectations(
    told: Ints, threshold: Ints, half_threshold: Ints, hungry: Flags, min_interval_ns: int
) -> list[Expected]:
    """What the meters of some rows are to expect.

    Args:
        told: [rows, 2] what is wanted, as told, Milli per second; 0 takes it back.
        threshold: [rows, 2] a slot's rate that is farther off is a jump (`Estimates.threshold`).
        half_threshold: [rows, 2] the same of half a round's rate (`Estimates.half_threshold`).
        hungry: [rows] whether the group as a whole is short.
        min_interval_ns: the least length of a slot.
    """
    # One unit more or less in a slot is no jump.
    unit = SCALE // min_interval_ns
    # As doubles: the greatest rate and the greatest threshold are more than 64 bits together.
    far = np.maximum(np.maximum(threshold, told // EARLY_PART), unit).astype(np.float64)
    is_told = told > 0
    noise_part = np.where(is_told, threshold / np.maximum(told, 1), FRESH_PART)
    is_steady = is_told.any(axis=1) & (~is_told | (threshold < told)).all(axis=1)
    columns = (told, told + far, told - far, half_threshold, noise_part, is_steady, hungry)
    return [Expected._make(row) for row in zip(*(one.tolist() for one in columns), strict=True)]
