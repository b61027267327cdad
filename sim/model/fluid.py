"""Token buckets of many members at once, with load as an even flow.

Law: over a round at one rate a bucket admits min(offered, tokens + rate), which
is what `rgd.core.buckets.bucket.Buckets` admits of ever smaller requests;
a change of rate takes the tokens above the new depth, and gives none.

A round is a second. Amounts are Milli (thousandths of a unit) in int64, rates
Milli per second.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MS_PER_S = 1000


@dataclass(slots=True)
class FluidBuckets:
    """One bucket for each (group, broker), all of one depth in time; they start full.

    Attributes:
        rate: [groups, brokers] Milli per second.
        tokens: [groups, brokers] Milli.
    """

    rate: Ints
    burst_ms: int
    tokens: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = self._depth()

    def set_rate(self, rate: Ints) -> None:
        """Change every rate."""
        self.rate = rate
        np.minimum(self.tokens, self._depth(), out=self.tokens)

    def admit(self, offered: Ints) -> Ints:
        """Let a round pass in which so many Milli were offered, evenly; what was admitted."""
        supply = self.tokens + self.rate
        admitted = np.minimum(offered, supply)
        supply -= admitted
        self.tokens = np.minimum(supply, self._depth(), out=supply)
        return np.asarray(admitted)

    def _depth(self) -> Ints:
        depth: Ints = self.rate * self.burst_ms // MS_PER_S
        return depth
