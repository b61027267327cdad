"""The verdict of the live view in words, the same on the page, in `rgd top` and in JSON.

Law: what is wrong comes first, then which groups are short, then how large the cluster is.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rgd.core.units import Dimension
from rgd.text import count, show
from rgd.views.live_model import BacklogsView, MembersView, PressuresView, PressureView, VerdictView

#: A broker that is granted less of its fair part than this is starved, as in the report.
STARVED_BELOW: Final = 0.5


def verdict_of(
    *,
    ready: bool,
    degraded: Sequence[str],
    brokers: MembersView,
    groups: PressuresView,
    backlogs: BacklogsView,
) -> VerdictView:
    """The state of things in a sentence."""
    bad = list(_bad(ready=ready, degraded=degraded, brokers=brokers))
    poor = [*_poor(degraded if ready else (), brokers, backlogs), *_starved(groups)]
    level = "bad" if bad else "poor" if poor else "good"
    text = "; ".join([*bad, *poor, _short(groups), _size(brokers, groups)])
    return VerdictView(level, f"{text[0].upper()}{text[1:]}.")


def _bad(*, ready: bool, degraded: Sequence[str], brokers: MembersView) -> Iterator[str]:
    if not ready:
        yield f"this daemon is not ready ({'; '.join(degraded) or 'shares are not known yet'})"
    silent = [one for one in brokers.members if one.silent]
    if len(silent) == 1:
        yield f"no message from {silent[0].broker} for {_span(silent[0].age_s)}"
    elif silent:
        some = ", ".join([*(one.broker for one in silent[:3]), *["..."] * (len(silent) > 3)])
        yield f"{brokers.silent} brokers are silent ({some})"


def _poor(degraded: Sequence[str], brokers: MembersView, backlogs: BacklogsView) -> Iterator[str]:
    yield from degraded
    if brokers.gone:
        gone = brokers.gone[0]
        more = f", and {len(brokers.gone) - 1} more" if len(brokers.gone) > 1 else ""
        yield f"gone for {_span(gone.ago_s)}: {gone.broker}{more}"
    elif brokers.total < brokers.expected:
        yield f"{brokers.expected} brokers are expected and {brokers.total} are here"
    if backlogs.blocked:
        yield f"publishing to {count(backlogs.blocked, 'topic')} is blocked by backlog quotas"


def _starved(groups: PressuresView) -> Iterator[str]:
    ratios = [
        (row.lowest, row) for row in groups.rows if row.pressure > 1 and row.lowest is not None
    ]
    lowest, row = min(ratios, key=lambda one: one[0], default=(1.0, None))
    if row is not None and lowest < STARVED_BELOW:
        yield f"broker {row.lowest_broker} has {lowest:.2f} of its fair part of {row.group}"


def _short(groups: PressuresView) -> str:
    if not groups.short:
        return "no demand is above its quota"
    first = next((row for row in groups.rows if row.pressure > 1), None)
    which = f", most {row_words(first)}" if first else ""
    return f"demand is above {groups.short:,} of {count(groups.total, 'quota')}{which}"


def row_words(row: PressureView) -> str:
    """A row in words."""
    is_bytes = row.dimension == Dimension.BYTES
    wanted, quota = (show(rate, is_bytes=is_bytes) for rate in (row.wanted, row.quota))
    fair = "" if row.lowest is None else f", lowest ratio {row.lowest:.2f}"
    return f"{row.group} ({row.kind}, {row.dimension}): {wanted}/s of {quota}/s{fair}"


def _size(brokers: MembersView, groups: PressuresView) -> str:
    verb = "shares" if brokers.total == 1 else "share"
    return f"{count(brokers.total, 'broker')} {verb} {count(groups.groups, 'group')}"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
