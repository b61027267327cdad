"""What a report is about: of some logs a time range, groups, tenants; and scenarios."""

from dataclasses import dataclass
from typing import Final

from rgd.analysis.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From (inclusive) until (exclusive), in ms since 1970; None is open."""

    from_ms: int | None = None
    to_ms: int | None = None

    def holds(self, timestamp_ms: int) -> bool:
        """Whether a moment lies in the range."""
        return (self.from_ms is None or timestamp_ms >= self.from_ms) and not self.is_over(
            timestamp_ms
        )

    def is_over(self, timestamp_ms: int) -> bool:
        """Whether a moment lies behind the range."""
        return self.to_ms is not None and timestamp_ms >= self.to_ms


ALWAYS: Final[TimeRange] = TimeRange()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is about; empty sets are all."""

    #: By the brokers' timestamps.
    within: TimeRange = ALWAYS
    groups: frozenset[str] = frozenset()
    #: Only groups whose figures are one of these tenants'.
    tenants: frozenset[str] = frozenset()
    #: What would have been different.
    scenarios: tuple[Scenario, ...] = ()
    #: Another range to compare with.
    compare: TimeRange | None = None


EVERYTHING: Final = Asked()
