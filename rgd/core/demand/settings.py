"""The exchange's two intervals, over which demand is counted."""

from dataclasses import dataclass

from rgd.core.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class DemandSettings:
    """The length of a round, and the minimum length of a slot."""

    round_ns: int = NS_PER_S
    min_interval_ns: int = NS_PER_S // 10
