"""The precision of reported rates: at least three significant digits, so that a rate is 16 bits on the wire.

Laws: a rounded rate differs from the rate by at most 1/800 of it, and not at all below `EXACT_MAX`;
rounding keeps the order of rates, and rounds nothing twice. Each rounded rate has a code, and codes are in
the order of their rates.

An exact rate is mostly noise. Peers act on changes of `exchange.tolerance` (10 %), and the estimator
assumes a noise of a thousandth at least, but the digits below take more bytes than those above. Rates are
rounded before they are advertised, so the sender and all receivers hold and hash the same numbers. The
usage log has what was counted.

The steps are decimal: of the fourth digit 2, 5 or 10, as 1000, 1002 .. 2000, 2005 .. 5000, 5010 .. 10000.
So what people write as a quota or offer as a load stays what it is.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Codes of rates, 16 bits unsigned each.
RateCodes = NDArray[np.uint16]

#: Rates below this, in Milli per second, are exact.
EXACT_MAX: Final = 1_000
#: The largest rounded rate; it is more than any limited quota.
RATE_MAX: Final = 9_210_000_000_000_000_000

#: (first of four digits, step), and the end of the digits.
_STEPS: Final = ((0, 1), (1_000, 2), (2_000, 5), (5_000, 10))
_DIGITS_END: Final = 10_000
#: Rates from which the unit of the four digits is 10, 100 and so on.
_TENS: Final = np.array([10**power for power in range(4, 19)], np.int64)
_UNITS: Final = np.array([10**power for power in range(16)], np.int64)


def _steps() -> Ints:
    """[four digits] the step there."""
    steps = np.zeros(_DIGITS_END, np.int64)
    for first, step in _STEPS:
        steps[first:] = step
    return steps


def _rates() -> Ints:
    """[codes] the rounded rates in order."""
    digits = [number for number in range(_DIGITS_END) if number % _STEP_OF[number] == 0]
    leading = [number for number in digits if number >= EXACT_MAX]
    rates = digits + [number * 10**power for power in range(1, 16) for number in leading]
    return np.array([rate for rate in rates if rate <= RATE_MAX], np.int64)


_STEP_OF: Final = _steps()
#: [codes] the rates.
RATES: Final = _rates()


def rounded(rates: Ints) -> Ints:
    """The nearest rounded rates; of two the greater.

    Args:
        rates: Milli per second, 0 to `COUNT_MAX`, of any shape.
    """
    rates = np.minimum(rates, RATE_MAX)
    units = _UNITS.take(_TENS.searchsorted(rates, side="right"))
    steps = _STEP_OF.take(rates // units) * units
    nearest: Ints = (rates + steps // 2) // steps * steps
    return nearest


def codes_of(rates: Ints) -> RateCodes | None:
    """The codes of rounded rates; None if any rate is not rounded, or is negative."""
    codes = RATES.searchsorted(rates)
    if np.array_equal(RATES.take(codes, mode="clip"), rates):
        return codes.astype(np.uint16)
    return None
