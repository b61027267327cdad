"""The exchange's two intervals, by which demand is counted."""

from dataclasses import dataclass

from rgd.core.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class DemandSettings:
    """A round, and the least length of a slot."""

    round_ns: int = NS_PER_S
    min_interval_ns: int = NS_PER_S // 10
