"""Counts what one group's callers asked and got, one meter for each kind.

Law: a retry is not new demand. What is offered is what was admitted, or the new
work that arrived if that is more. Work whose caller does not say which attempt
it is counts too, refused as well, but only so much of it (`_unsaid_most`).

Requests add to `Counters`. The tick (`Rounds.tick`) closes a slot of each that was asked, as of its last
request: so evenly spaced callers are measured exactly, however the rounds fall, and random ones without
bias. A slot that differs from those before it by more than noise begins a new segment; a rate is that of
the newest segment, so a step within a round is not diluted. The slot in which the step fell is neither
the one nor the other: it counts until the next one closes. Steps too small for a
slot are looked for in each half of a round, where the group is short. What is
noise, the estimator says; a unit more or less in a slot is none of it, and no step.
"""

from dataclasses import dataclass
from math import nan
from typing import Final

from rgd.core.demand.bound import UnsaidBound
from rgd.core.demand.counters import Counters
from rgd.core.demand.credit import Credit
from rgd.core.demand.expected import Expected
from rgd.core.demand.marks import (
    SCALE,
    Mark,
    bounded,
    newly,
    plus,
    rate,
    total,
    unsaid_between,
    whole_rate,
)
from rgd.core.demand.measured import Demand, Measured
from rgd.core.demand.noise import SlotNoise
from rgd.core.units import NS_PER_S, Nanos, Pair

#: A flow that changes more often than this in one round is bursty, and taken as a whole.
CHANGES_MAX: Final = 1

#: A silence of more than so many usual gaps, and a slot, counts as time without demand.
_GAPS_QUIET: Final = 2

#: What was told of the slot in which a step fell is corrected if it is off by more than this part.
_AFTER_STEP_PART: Final = 100

#: A half round that is off what was told by less than this part of it is no step.
_HALF_PART: Final = 100

_new_mark: Final = tuple.__new__
_NOTHING: Final = Pair()
_NONE: Final = (0, 0)
_NOTHING_TOLD: Final = Expected()


@dataclass(frozen=True, slots=True)
class MeterSettings:
    """The exchange's two intervals."""

    round_ns: int = NS_PER_S
    #: Least length of a slot.
    min_interval_ns: int = NS_PER_S // 10


class DemandMeter:
    """Counters of one (group, kind) since the start, and marks of them."""

    __slots__ = (
        "_base",
        "_begin",
        "_changes",
        "_counters",
        "_credit",
        "_end",
        "_expected",
        "_first",
        "_first_at",
        "_gap_ns",
        "_half",
        "_held_before",
        "_is_half_step",
        "_is_mixed",
        "_noise",
        "_settings",
        "_wanted_total",
        "_was_clear",
        "_was_told_mixed",
        "_window",
        "_window_begin",
        "_window_refused",
    )

    def __init__(self, counters: Counters, settings: MeterSettings | None = None) -> None:
        self._settings = settings or MeterSettings()
        self._counters = counters
        self._wanted_total = Pair()
        #: What topics held back in the window before the open one.
        self._held_before: dict[str | None, Pair] = {}
        self._credit = (Credit(), Credit())
        self._expected = _NOTHING_TOLD
        #: Where the open window began.
        self._window = self._mark(counters.at)
        self._window_refused = (0, 0)
        #: The newest segment, from the end of one slot to that of another; None while idle.
        self._begin: Mark | None = None
        self._end = self._window
        #: Where the segment was when the window began; what was before the first request of all.
        self._window_begin: Mark | None = None
        self._first: Mark | None = None
        self._first_at = counters.at
        #: Where that began which the next slot is compared with: the segment, or the one before.
        self._base = self._window
        #: Whether the segment is but the slot in which a step fell, and whether that was told.
        self._is_mixed = self._was_told_mixed = False
        #: Where the open half of the window began, and whether a step fell into the one before.
        self._half = self._window
        self._is_half_step = False
        self._changes = 0
        #: Whether a slot of the open window refused nothing.
        self._was_clear = False
        #: Usual time between two requests.
        self._gap_ns = 0
        self._noise = (SlotNoise(), SlotNoise())

    @property
    def topics(self) -> int:
        """Topics that were active in the open window."""
        return len(self._counters.topics)

    def expect(self, expected: Expected) -> None:
        """Take note of what the peers were told; what is far from it is a jump."""
        self._expected = expected

    def measure(self, now: Nanos) -> Measured:
        """What is known of the rates now, for an early report; the window stays open."""
        self._begin_flow()
        return self._measure(
            self._mark(now), self._held_before | self._counters.held, is_round=False
        )

    def drain(self, now: Nanos) -> Demand | None:
        """Close the window and open the next; None when nothing was asked in it."""
        window, mark = self._window, self._mark(now)
        if mark.requests == window.requests:
            self._open(mark)
            if self._begin is not None:
                self._rest()
            return None
        self._begin_flow()
        period_ns = max(1, now - window.at)
        wanted = self._offered(window, mark, period_ns)
        held = self._counters.held
        if held:
            wanted = plus(wanted, total(held.values()))
        self._wanted_total = bounded(plus(self._wanted_total, wanted))
        if self._is_half_step or (self._expected.is_hungry and self._begin is not None):
            self._close_half(self._end)
        measured = self._measure(mark, held, is_round=True)
        demand = Demand(
            self.topics,
            rate((mark.messages - window.messages, mark.bytes - window.bytes), period_ns),
            rate(wanted, period_ns),
            self._refused_in_window(),
            bounded((mark.messages, mark.bytes)),
            self._wanted_total,
            measured,
        )
        if mark.unsaid_messages or mark.unsaid_bytes:
            self._learn_credit(mark, measured)
        self._open(mark)
        if measured.requests:
            # What follows a step's slot is not compared with it.
            self._base = self._end if self._is_mixed else self._begin or self._end
            self._begin = self._window_begin = self._half = self._end
            self._is_mixed = False
            self._first = None
            if self._counters.unsaid is not None:
                self._counters.unsaid.open()
        else:
            self._rest()
        return demand

    def totals(self) -> tuple[Pair, Pair]:
        """Admitted and wanted since the start, the open window's admitted included."""
        counters = self._counters
        return bounded((counters.messages, counters.bytes)), self._wanted_total

    def _refused_in_window(self) -> Pair:
        messages, size = self._window_refused
        counters = self._counters
        return bounded((counters.refused_messages - messages, counters.refused_bytes - size))

    def _open(self, mark: Mark) -> None:
        self._window = mark
        counters = self._counters
        self._window_refused = (counters.refused_messages, counters.refused_bytes)
        self._held_before, counters.held = counters.held, {}
        counters.topics = set()
        self._changes = 0
        self._was_clear = False

    def _learn_credit(self, mark: Mark, measured: Measured) -> None:
        """Learn what of unsaid refusals was new, from the whole window or from the time after."""
        window = self._window
        per_s = SCALE / max(1, mark.at - window.at)
        granted = (mark.messages - window.messages, mark.bytes - window.bytes)
        unsaid = unsaid_between(window, mark)
        columns = zip(self._credit, unsaid, granted, measured.offered, strict=True)
        for credit, refused, admitted, offered in columns:
            if refused:
                credit.refused(admitted * per_s, refused * per_s, throughout=not self._was_clear)
            elif measured.requests:
                credit.cleared(offered)

    def _begin_flow(self) -> None:
        """Close the first slot of a flow whose first tick is still to come."""
        if self._begin is None and self._counters.requests != self._window.requests:
            self.close_slot()

    def _rest(self) -> None:
        """Forget the flow: what comes next is a fresh one, whose first request begins it."""
        self._begin = None
        self._is_mixed = self._was_told_mixed = self._is_half_step = False
        self._counters.unsaid, self._noise = None, (SlotNoise(), SlotNoise())

    def _mark(self, now: Nanos) -> Mark:
        of = self._counters
        counters = (
            now,
            of.requests,
            of.retries,
            of.refusals,
            of.messages,
            of.bytes,
            of.messages - of.retried_messages + of.refused_new_messages,
            of.bytes - of.retried_bytes + of.refused_new_bytes,
            of.unsaid_messages,
            of.unsaid_bytes,
        )
        # Half the time of `Mark(...)`.
        return _new_mark(Mark, counters)

    def close_slot(self) -> bool:
        """End the slot as of the last request; whether demand has jumped, so that peers should know."""
        now = self._counters.at
        if self._begin is not None and 2 * (now - self._end.at) < self._settings.min_interval_ns:
            # Too short to show a rate: it goes on.
            return False
        mark, end = self._mark(now), self._end
        self._end = mark
        if self._begin is None:
            self._begin = self._window_begin = self._base = self._half = mark
            self._first, self._first_at = self._window, self._counters.touched_at
            return False
        slot = self._rates(end, mark)
        for noise, here in zip(self._noise, slot, strict=True):
            noise.take(here)
        was_told_mixed = self._was_told_mixed
        if self._is_mixed:
            # A step falls into a slot, which is neither the one nor the other.
            self._begin = self._base = end
            self._is_mixed = self._was_told_mixed = False
        elif self._base is not end and self._is_change(slot, end, mark):
            self._begin, self._is_mixed = end, True
            self._changes += 1
        else:
            self._base = self._begin
        refuses = mark.refusals > end.refusals
        self._was_clear |= not refuses
        is_half = 2 * (now - self._half.at) >= self._settings.round_ns
        if is_half and self._close_half(mark):
            return True
        if was_told_mixed and self._is_told_wrong(slot):
            return True
        return self._is_jump(slot, refuses=refuses)

    def _close_half(self, mark: Mark) -> bool:
        """End a half of the window, and begin a segment with it if a small step fell into it."""
        half, self._half = self._half, mark
        was_step, self._is_half_step = self._is_half_step, False
        begin = self._begin
        assert begin is not None, "a slot was closed"
        expected = self._expected
        if not expected.is_hungry or self._is_mixed or half is mark or begin.at > half.at:
            # Nobody goes short, or a slot has shown a step since.
            return False
        unit = SCALE / (mark.at - half.at) + SCALE / self._settings.round_ns
        # What was told of the half into which a step fell is corrected as that of a slot is.
        least = (0, 0) if was_step else expected.half
        columns = zip(self._rates(half, mark), expected.told, least, expected.above, strict=True)
        for here, told, far, above in columns:
            # A slot shows larger steps.
            if told and max(unit, far, told / _HALF_PART) < abs(here - told) <= above - told:
                self._begin = self._base = half
                self._is_half_step = not was_step
                return True
        return False

    def _is_change(self, slot: tuple[float, float], end: Mark, mark: Mark) -> bool:
        """Whether the slot that ended differs from those before it by more than noise."""
        base = self._base
        # Units are whole: one more or less in either is no difference.
        unit = SCALE / max(1, mark.at - end.at) + SCALE / max(1, end.at - base.at)
        noise_parts = self._expected.noise_part
        for here, before, noise_part in zip(slot, self._rates(base, end), noise_parts, strict=True):
            if abs(here - before) > max(unit, noise_part * max(here, before)):
                return True
        return False

    def _is_told_wrong(self, slot: tuple[float, float]) -> bool:
        """Whether the first slot after a step's own shows that what was told of that was off."""
        pairs = zip(slot, self._expected.told, strict=True)
        return any(abs(here - told) * _AFTER_STEP_PART > told > 0 for here, told in pairs)

    def _is_jump(self, slot: tuple[float, float], *, refuses: bool) -> bool:
        (messages, size), expected = slot, self._expected
        if refuses:
            return messages > expected.above[0] or size > expected.above[1]
        if expected.is_hungry:
            return messages < expected.below[0] or size < expected.below[1]
        return False

    def _measure(self, mark: Mark, held: dict[str | None, Pair], *, is_round: bool) -> Measured:
        held_rate = rate(total(held.values()), self._settings.round_ns) if held else _NOTHING
        if self._begin is None:
            return Measured(held=held_rate, elapsed_ns=max(1, mark.at - self._window.at))
        if is_round and self._has_stopped(mark.at):
            return Measured(held=held_rate, elapsed_ns=max(1, mark.at - self._end.at))
        begin, end, elapsed_ns = self._span(mark, is_round=is_round)
        settled = None
        if self._is_mixed and begin is self._begin:
            settled = whole_rate(self._rates(self._base, self._begin))
            self._was_told_mixed = True
        return Measured(
            rate((end.messages - begin.messages, end.bytes - begin.bytes), elapsed_ns),
            rate(self._offered(begin, end, elapsed_ns), elapsed_ns),
            held_rate,
            (end.requests - begin.requests) - (end.retries - begin.retries),
            elapsed_ns,
            end.refusals > begin.refusals,
            (_known(self._noise[0].sigma), _known(self._noise[1].sigma)),
            settled,
        )

    def _has_stopped(self, now: Nanos) -> bool:
        """Whether a flow that used to be steady has been silent for half a round."""
        if self._first is not None and self._begin is self._end:
            return False
        assert self._begin is not None, "something was asked"
        count = self._end.requests - self._begin.requests
        if count:
            self._gap_ns = (self._end.at - self._begin.at) // count
        silent_ns = now - self._counters.at - self._settings.min_interval_ns
        least_ns = max(self._settings.round_ns // 2, _GAPS_QUIET * self._gap_ns)
        return self._expected.is_steady and silent_ns >= least_ns

    def _span(self, mark: Mark, *, is_round: bool) -> tuple[Mark, Mark, int]:
        """From where to where rates are reckoned, and over which time."""
        begin, end = self._begin, self._end
        assert begin is not None, "something was asked"
        if self._changes > CHANGES_MAX and self._window_begin is not None:
            begin = self._window_begin
        least_ns = self._settings.min_interval_ns
        if begin is end:
            # Not one whole slot: all there was, the first request too if there was none before.
            if self._first is not None and self._window_begin is begin:
                return self._fresh_span(self._first, mark, is_round=is_round)
            return begin, mark, max(least_ns, mark.at - begin.at)
        gap_ns = (end.at - begin.at) // max(1, end.requests - begin.requests)
        if mark.at - self._counters.at > least_ns + _GAPS_QUIET * gap_ns:
            end = mark
        return begin, end, max(1, end.at - begin.at)

    def _fresh_span(self, first: Mark, mark: Mark, *, is_round: bool) -> tuple[Mark, Mark, int]:
        since = self._first_at
        if is_round and mark.requests - first.requests == 1 and mark.refusals == first.refusals:
            # One request that was granted says nothing of a rate: one in a round.
            since = min(since, Nanos(mark.at - self._settings.round_ns))
        return first, mark, max(self._settings.min_interval_ns, mark.at - since)

    def _offered(self, begin: Mark, end: Mark, period_ns: int) -> tuple[int, int]:
        messages, size = newly(begin, end)
        unsaid = unsaid_between(begin, end)
        if unsaid == _NONE:
            return messages, size
        bound = self._counters.unsaid or UnsaidBound()
        most = bound.most(self._expected.told, period_ns, end.at)
        counted = [
            int(min(count * credit.part, limit))
            for count, credit, limit in zip(unsaid, self._credit, most, strict=True)
        ]
        return messages + counted[0], size + counted[1]

    def _rates(self, begin: Mark, end: Mark) -> tuple[float, float]:
        """What was offered between two marks in Milli per second, without the bound."""
        per_s = SCALE / max(1, end.at - begin.at)
        messages: float
        size: float
        messages, size = newly(begin, end)
        unsaid = unsaid_between(begin, end)
        if unsaid != _NONE:
            messages += unsaid[0] * self._credit[0].part
            size += unsaid[1] * self._credit[1].part
        return messages * per_s, size * per_s


def _known(sigma: float | None) -> float:
    return nan if sigma is None else sigma
