"""What is asked of a run, and whether it was reached.

A target is a figure of the last line and a bound in words, `<= 1` or `>= 0.91`. Targets are what the
issues ask of `max-min` with a scenario's own settings; missing one is no broken law.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.metrics import Figures


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target."""

    figure: str
    asked: str
    value: float | None
    is_met: bool


def verdicts_of(figures: Figures, targets: Mapping[str, str]) -> list[Verdict]:
    """Hold figures against targets."""
    return [_verdict(figures, figure, asked) for figure, asked in targets.items()]


def _verdict(figures: Figures, figure: str, asked: str) -> Verdict:
    value: float | None = getattr(figures, figure)
    operator, bound = asked.split()
    if operator not in ("<=", ">="):
        raise ValueError(f"{figure}: {asked!r} is neither <= nor >=")
    limit = float(bound)
    is_met = value is not None and (value <= limit if operator == "<=" else value >= limit)
    return Verdict(figure, asked, value, is_met)
