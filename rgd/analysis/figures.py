"""Figures for people: rates, parts, lengths of time, moments.

Law: a number has its unit, a time its zone, and an unknown value is a dash, never a 0.
"""

from datetime import UTC, datetime
from typing import Final

NOTHING: Final = "\N{EN DASH}"


def amount(value: float | None, dimension: str) -> str:
    """A rate or amount without `/s`: `1,234`, `12.5`, or `1.2 MB`."""
    if value is None:
        return NOTHING
    if dimension != "bytes":
        return _short(value)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{_short(value)} {unit}"
        value /= 1000
    return f"{_short(value)} TB"


def percent(value: float | None) -> str:
    """A part of 1 as percent."""
    if value is None:
        return NOTHING
    part = value * 100
    return f"{part:.1f} %" if 0 < abs(part) < 10 or 90 < part < 100 else f"{part:.0f} %"


def times(value: float | None) -> str:
    """A multiple."""
    return NOTHING if value is None else f"{value:.2f} x"


def ratio(value: float | None) -> str:
    """A number around 1."""
    return NOTHING if value is None else f"{value:.3f}"


def span(seconds: float) -> str:
    """A length of time."""
    if seconds < 120:
        return f"{seconds:g} s" if seconds == round(seconds) else f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def ahead(ms: float) -> str:
    """By how much a clock was off: `60.0 min ahead`."""
    return f"{span(round(abs(ms) / 1000, 1))} {'ahead' if ms > 0 else 'behind'}"


def moment(ms: float) -> str:
    """A date and time, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def clock(ms: float) -> str:
    """A time of day, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S}"


def _short(value: float) -> str:
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
