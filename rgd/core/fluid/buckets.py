"""Token buckets of many brokers at once, with load as an even flow.

Law: over some time at one rate a bucket admits min(offered, tokens + rate), which
is what `rgd.core.buckets.bucket.Buckets` admits of ever smaller requests;
a change of rate takes the tokens above the new depth, and gives none. Dimensions are buckets of their own.

Amounts are Milli (thousandths of a unit) as whole float64, rates Milli per second, infinite where unlimited.
"""

from dataclasses import dataclass, field

import numpy as np

from rgd.core.shares.columns_sums import Floats

MS_PER_S = 1000


@dataclass(slots=True)
class FluidBuckets:
    """One bucket for each (group, broker, dimension), all of one depth in time; they start full.

    Attributes:
        rate: [groups, brokers, dimensions] Milli per second.
        tokens: [groups, brokers, dimensions] Milli.
    """

    rate: Floats
    burst_ms: int
    tokens: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = self._amount(self.burst_ms)

    def set_rate(self, rate: Floats) -> None:
        """Change every rate."""
        self.rate = rate
        np.minimum(self.tokens, self._amount(self.burst_ms), out=self.tokens)

    def admit(self, offered: Floats, ms: float) -> Floats:
        """Let some time pass in which so much was offered, evenly; what was admitted."""
        supply = self.tokens + self._amount(ms)
        admitted = np.minimum(offered, supply)
        supply -= admitted
        self.tokens = np.minimum(supply, self._amount(self.burst_ms), out=supply)
        return admitted

    def _amount(self, ms: float) -> Floats:
        """What flows in so many ms."""
        return np.floor(self.rate * (ms / MS_PER_S))
