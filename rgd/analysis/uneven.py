"""How uneven demand was within windows, from what was admitted of it; so what other shares would have admitted.

A log has sums of rounds. Callers ask for more in one moment and for less in another, so at a share of 100 a second less than
100 are admitted of 100 that are wanted. Here a rate is spread evenly over `wanted` +- `spread` within its window. It would
explain what was refused of it and unused of the share exactly with

    spread = (sqrt(refused) + sqrt(unused)) ** 2

but where one of the two is small that makes much of chance, so spread is 4 * sqrt(refused * unused): the same where
they are equal, and nothing where either is 0. For what remains the share counts for more or less than itself: tokens that
were saved, demand that was there for a part of the time only, refusals of other levels.

Law: at the logged share the logged rate is admitted; at 0 nothing, at enough all. Of two dimensions, the one whose
share is used most explains the refusals, because requests take of both or of none.
"""

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from rgd.analysis.row_columns import Floats
from rgd.core.exchange.columns import Flags

#: Less than this part of `wanted` is not worth explaining: rows are split at the borders of windows.
REFUSED_MIN: Final = 0.001
#: What a share counts beside itself grows with it, up to so many times the logged one.
GROWS_MAX: Final = 2.0
#: Where a share is more than so many times that of a window beside, work was admitted at one or the other.
MOVES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Uneven:
    """Demand of windows; arrays are [..., dimensions], Milli per second."""

    wanted: Floats
    #: Within a window it is spread evenly over `wanted` +- `spread`.
    spread: Floats
    #: The logged share, and what it counted beside itself; 0: unlimited or unknown, and nothing.
    share: Floats
    beside: Floats

    @classmethod
    def of(cls, wanted: Floats, admitted: Floats, share: Floats) -> "Uneven":
        """What was wanted, of which so much was admitted at that share; 0: unlimited or unknown."""
        used = np.divide(admitted, share, out=np.zeros_like(share), where=share > 0)
        refused = np.maximum(wanted - admitted, 0.0)
        is_known = (share > 0) & (used == used.max(axis=-1, keepdims=True))
        is_known &= refused > REFUSED_MIN * wanted
        unused = np.maximum(share - admitted, 0.0)
        spread = np.where(is_known, np.minimum(4 * np.sqrt(refused * unused), wanted), 0.0)
        # The share at which such a spread would have admitted as much.
        counted = np.where(
            spread > refused, wanted + spread - 2 * np.sqrt(spread * refused), admitted
        )
        return cls(wanted, spread, share, np.where(is_known, counted - share, 0.0))

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> "Uneven":
        """No demand."""
        return cls(*(np.zeros(shape) for _ in fields(cls)))

    def put(self, place: Any, other: "Uneven") -> None:
        """Place another demand in this one."""
        for one in fields(self):
            getattr(self, one.name)[place] = getattr(other, one.name)

    def at(self, place: Any) -> "Uneven":
        """The demand in a place."""
        return Uneven(*(getattr(self, one.name)[place] for one in fields(self)))

    def admitted(self, share: Floats) -> Floats:
        """What is admitted at shares, infinite where unlimited."""
        wanted, spread = self.wanted, self.spread
        times = np.divide(share, self.share, out=np.zeros_like(share), where=self.beside != 0)
        counted = share + self.beside * np.minimum(times, GROWS_MAX)
        within = np.clip(counted, wanted - spread, wanted + spread)
        lost = (within - wanted + spread) ** 2 / np.maximum(4 * spread, 1.0)
        # A dimension in which nothing is wanted limits no other.
        admitted = np.minimum(counted, within - lost)
        part = np.divide(admitted, wanted, out=np.ones_like(wanted), where=wanted > 0)
        return np.asarray(wanted * part.min(axis=-1, keepdims=True), np.float64)


def moves(share: Floats) -> Flags:
    """[windows, ...] whether a share is far from that of the window before or after, or unknown in one of them."""
    low, high = share.copy(), share.copy()
    for at, other in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None))):
        np.minimum(low[at], share[other], out=low[at])
        np.maximum(high[at], share[other], out=high[at])
    return np.asarray(high > MOVES * low, np.bool_)
