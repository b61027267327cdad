"""Judges the demo by what the load counted: was every broker at its max-min part, and when?

Law: the part is max-min of the load's own wanted rates by the core's own
policy, without floors; the daemons' view of themselves is not asked.

`rounds` is the number of whole rounds from a phase's event until every broker
is within `ERROR_MAX` of its part, for good if it ever is; `worst_error` is the
largest deviation, relative to the part, over the rounds from then to the
phase's end. What slips over the border of two rounds, on a busy machine, is no deviation: a round also
counts together with the one before it or after it, the phase's first one apart. A round in which a load was not run by the machine says nothing
about the daemons, so it counts as the one before it (`unjudged`): a load was late, or asked for much
less than it does in most rounds of the phase.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from rgd.app.demo.plan import ERROR_MAX, ROUNDS_MAX
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import Pair, to_milli, to_units

#: Counts are kept for slices of this length.
SLICE_MS: Final = 20
#: What a load could not ask for in time it asks for so soon after.
CATCHING_UP_MS: Final = 250
#: A load that asks for less than this part of what it usually does was not run, or not answered.
ASKED_MIN: Final = 0.92


class Tally:
    """What one load wanted and was admitted, by slices of time."""

    def __init__(self) -> None:
        self._slices: dict[int, list[int]] = {}
        #: From when to when it was to ask, and the machine did not run it.
        self.late: list[tuple[int, int]] = []

    def add(self, begin_ms: int, end_ms: int, *counted: int) -> None:
        """Count what was wanted and admitted between two moments, evenly over the slices between them."""
        first, last = begin_ms // SLICE_MS, max(begin_ms, end_ms - 1) // SLICE_MS
        count = last - first + 1
        for place in range(count):
            row = self._slices.setdefault((first + place) * SLICE_MS, [0, 0])
            for column, messages in enumerate(counted):
                row[column] += messages * (place + 1) // count - messages * place // count

    def rates(self, begin_ms: float, end_ms: float) -> tuple[float, float]:
        """Wanted and admitted per second between two moments."""
        # Only those between them: a benchmark asks for thousands of windows, on the loop of its loads.
        slices = range(ceil(begin_ms / SLICE_MS) * SLICE_MS, ceil(end_ms), SLICE_MS)
        rows = [row for at_ms in slices if (row := self._slices.get(at_ms)) is not None]
        seconds = (end_ms - begin_ms) / 1000
        return sum(row[0] for row in rows) / seconds, sum(row[1] for row in rows) / seconds

    def was_late(self, begin_ms: float, end_ms: float) -> bool:
        """Whether it stood still between two moments, or so shortly before that its retries come there."""
        return any(
            due_ms < end_ms and began_ms > begin_ms - CATCHING_UP_MS
            for due_ms, began_ms in self.late
        )


@dataclass(frozen=True, slots=True)
class PhaseVerdict:
    """How one phase went."""

    name: str
    #: None: it never was fair.
    rounds: int | None
    worst_error: float | None
    ok: bool
    #: Rounds that count as the one before them.
    unjudged: int = 0


def parts(quota: float, wanted: Sequence[float]) -> list[float]:
    """Max-min parts of a quota; what nobody wants is nobody's part."""
    rows = [Row(f"{place:03}", wanted=Pair(to_milli(want))) for place, want in enumerate(wanted)]
    shares = allocate(SharePolicyName.MAX_MIN, Rates(to_milli(quota)), rows, floor_ppm=0)
    return [
        want if share.messages is None else min(want, to_units(share.messages))
        for want, share in zip(wanted, shares, strict=True)
    ]


def judge(
    name: str, quota: float, tallies: Mapping[str, Tally], *, begin_ms: float, rounds: int
) -> PhaseVerdict:
    """Judge a phase that began at `begin_ms` and lasted so many rounds of a second."""
    errors: list[float] = []
    unjudged = 0

    def asked(tally: Tally, place: int) -> float:
        return tally.rates(begin_ms + place * 1000, begin_ms + (place + 1) * 1000)[0]

    usual = [
        (tally, median(asked(tally, place) for place in range(rounds)))
        for tally in tallies.values()
    ]

    def is_late(place: int) -> bool:
        begin = begin_ms + place * 1000
        return any(
            tally.was_late(begin, begin + 1000) or asked(tally, place) < ASKED_MIN * most
            for tally, most in usual
        )

    def error(first: int, last: int) -> float:
        """Of the rounds from `first` to `last` together."""
        begin, end = begin_ms + first * 1000, begin_ms + (last + 1) * 1000
        rates = [tally.rates(begin, end) for tally in tallies.values()]
        return _worst(parts(quota, [rate[0] for rate in rates]), [rate[1] for rate in rates])

    for place in range(rounds):
        if errors and is_late(place):
            unjudged += 1
            errors.append(errors[-1])
            continue
        beside = [
            # What did not come in the other round, came in neither.
            2 * error(first, first + 1)
            for first in (place - 1, place)
            if 0 < first < rounds - 1 and not is_late(first) and not is_late(first + 1)
        ]
        errors.append(min([error(place, place), *beside]))
    fair_from = _fair_from(errors)
    if fair_from is None:
        return PhaseVerdict(name, None, None, ok=False, unjudged=unjudged)
    worst = max(errors[fair_from:])
    ok = fair_from <= ROUNDS_MAX and worst <= ERROR_MAX
    return PhaseVerdict(name, fair_from, round(worst, 4), ok=ok, unjudged=unjudged)


def _fair_from(errors: Sequence[float]) -> int | None:
    """The first fair round after which none is unfair; else the first fair one; else None."""
    for_good = len(errors)
    while for_good > 0 and errors[for_good - 1] <= ERROR_MAX:
        for_good -= 1
    if for_good < len(errors):
        return for_good
    return next((place for place, error in enumerate(errors) if error <= ERROR_MAX), None)


def _worst(wanted_parts: Sequence[float], admitted: Sequence[float]) -> float:
    """Largest deviation relative to the part; a broker whose part is nothing may have nothing."""
    return max(
        abs(got - part) / part if part >= 1 else float(got >= 1)
        for part, got in zip(wanted_parts, admitted, strict=True)
    )
