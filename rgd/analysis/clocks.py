"""Computes the error of each broker's wall clock from the order of received messages.

`rgd.analysis.clock_offsets` compares the brokers' monotonic clocks by the order of received messages. A wall
clock is then compared with the common time.

Law: times are changed only where a clock was off by more than `TOLERANCE_ROUNDS`, then for the whole
incarnation. They are then right to about a round, and keep their order.

A piece of a timeline begins where the wall clock gained on the monotonic one. Each piece is aligned by itself.
One without bounds of its own continues its neighbour by the monotonic clock. An incarnation without
contact has the clock error of the same broker's nearest other one.

The data do not show which clocks are right. The error that most brokers share counts as none. Of two
brokers that differ, the first by name counts as right.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rgd.analysis.chunks import Floats
from rgd.analysis.clock_offsets import STRETCH_ROUNDS, ClockOffset, find_offsets
from rgd.analysis.continuity import incarnation_name
from rgd.analysis.headers import Sampling
from rgd.analysis.timelines import Records, gather_records
from rgd.core.exchange.messages import RoundRecord
from rgd.core.units import NS_PER_MS
from rgd.wire.frame import Entry

#: Clocks are corrected if they are off by more than this many rounds. Smaller errors are below the
#: resolution of the sightings, and brokers' rounds differ by as much anyway.
TOLERANCE_ROUNDS: Final = 2.0

#: Most clock errors that one report lists, the largest first; more are counted.
ERRORS_LISTED_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class ClockError:
    """A stretch of time in which a broker's wall clock was off."""

    broker: str
    #: By the common time, ms since 1970.
    from_ms: int
    to_ms: int
    #: How far it was ahead of the others'; negative if behind.
    ahead_ms: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """The findings about the clocks of some logs."""

    #: For brokers and incarnations with wrong times: maps their own clock to
    #: common time, ms since 1970.
    offsets: dict[tuple[str, str], ClockOffset]
    errors: tuple[ClockError, ...]
    #: Brokers whose clocks cannot be compared with the others'.
    unaligned: tuple[str, ...]

    def time_of(self, entry: Entry, record: RoundRecord) -> int:
        """The time of a record, ms since 1970: as stamped, unless that clock was off."""
        sender = record.sender
        offset = self.offsets.get((sender.broker, incarnation_name(sender.incarnation)))
        if offset is None:
            return entry.timestamp
        local = np.array([record.ended_ns / NS_PER_MS])
        return max(0, round(float(offset.common(local)[0])))

    def uncorrected(self) -> "Clocks":
        """What is known of times that stay as stamped: whose are off is unaligned."""
        off = {one.broker for one in self.errors}
        return Clocks({}, (), tuple(sorted(off.union(self.unaligned))))


#: No findings: times are as stamped.
AS_STAMPED: Final = Clocks({}, (), ())


def align_clocks(headers: Any, sampling: Sampling, round_ms: float) -> Clocks:
    """Find how far the clocks were off, from a `pyarrow.Table` of `schema.HEADERS`."""
    records = gather_records(headers, TOLERANCE_ROUNDS * round_ms)
    # At least two samples in each stretch.
    stretch_rounds = max(STRETCH_ROUNDS, 2 * sampling.period)
    return align(records, round_ms=round_ms, stretch_rounds=stretch_rounds)


def align(records: Records, *, round_ms: float, stretch_rounds: float = STRETCH_ROUNDS) -> Clocks:
    """Find how far the brokers' clocks were off.

    Args:
        records: the clocks in the logs.
        round_ms: length of a round.
        stretch_rounds: length of a stretch; longer than `STRETCH_ROUNDS` if only samples were kept.
    """
    if records.pieces == 0:
        return Clocks({}, (), ())
    tolerance_ms = TOLERANCE_ROUNDS * round_ms
    of_pieces = find_offsets(records, round_ms=round_ms, stretch_rounds=stretch_rounds)
    offsets = _offsets(records, of_pieces)
    aligned = {records.timelines[number].broker for number in offsets}
    offsets = _on_the_shared_clock(records, offsets, tolerance_ms)
    offsets |= _of_kin(records, offsets)
    offsets |= _alone(records, offsets)
    common = np.empty(len(records.local_ms))
    for number, offset in offsets.items():
        own = records.of_timeline(number)
        common[own] = offset.common(records.local_ms[own])
    error = records.clock_ms - common
    brokers = {one.broker for one in records.timelines}
    if len(aligned) == 1 and len(brokers) > 1:
        aligned = set()
    return Clocks(
        {
            records.timelines[number].key: offset
            for number, offset in offsets.items()
            if (np.abs(error[records.of_timeline(number)]) > tolerance_ms).any()
        },
        _errors(records, common, error, tolerance_ms),
        tuple(sorted(brokers - aligned)),
    )


def _offsets(records: Records, of_pieces: dict[int, ClockOffset]) -> dict[int, ClockOffset]:
    """The offset of each timeline with an aligned piece; its other pieces continue from there."""
    parts: dict[int, list[ClockOffset]] = {}
    for piece in sorted(of_pieces):
        own = records.of_piece(piece)
        number = int(records.timeline[own.start])
        parts.setdefault(number, []).append(of_pieces[piece].within(records.local_ms[own]))
    return {
        number: ClockOffset(
            np.concatenate([one.at_ms for one in of]), np.concatenate([one.add_ms for one in of])
        )
        for number, of in parts.items()
    }


def _on_the_shared_clock(
    records: Records, offsets: dict[int, ClockOffset], tolerance_ms: float
) -> dict[int, ClockOffset]:
    """The offsets, shifted so that the clock error that most brokers share is zero."""
    if not offsets:
        return offsets
    own = {number: records.of_timeline(number) for number in offsets}
    error = np.concatenate(
        [
            records.clock_ms[own[number]] - offset.common(records.local_ms[own[number]])
            for number, offset in offsets.items()
        ]
    )
    weights = _weights(records)
    weight = np.concatenate([weights[own[number]] for number in offsets])
    zero = _shared_error(error, weight, tolerance_ms)
    return {number: ClockOffset(one.at_ms, one.add_ms + zero) for number, one in offsets.items()}


def _weights(records: Records) -> Floats:
    """One error for each broker, so that all count the same; the first by name decides a tie."""
    brokers = sorted({one.broker for one in records.timelines})
    index_of = {broker: index for index, broker in enumerate(brokers)}
    index = np.array([index_of[one.broker] for one in records.timelines], np.int64)
    broker = index[records.timeline]
    weight = 1.0 / np.bincount(broker, minlength=len(brokers))[broker]
    return np.where(broker == 0, weight * 1.001, weight)


def _shared_error(error: Floats, weight: Floats, tolerance_ms: float) -> float:
    """The error that most brokers share, to within the tolerance."""
    order = np.argsort(error)
    error, total = error[order], np.concatenate([[0.0], np.cumsum(weight[order])])
    end = np.searchsorted(error, error + tolerance_ms, side="right")
    first = int(np.argmax(np.round(total[end] - total[:-1], 9)))
    return float(np.median(error[first : end[first]]))


def _of_kin(records: Records, offsets: dict[int, ClockOffset]) -> dict[int, ClockOffset]:
    """For incarnations without contact: the clock error of the broker's nearest other one."""
    kin: dict[str, list[int]] = {}
    for number in offsets:
        kin.setdefault(records.timelines[number].broker, []).append(number)
    begun = {
        broker: [records.timelines[one].clock_ms[0] for one in of] for broker, of in kin.items()
    }
    found = {}
    for number, timeline in enumerate(records.timelines):
        if number in offsets or timeline.broker not in kin:
            continue
        away = np.abs(np.array(begun[timeline.broker]) - timeline.clock_ms[0])
        near = kin[timeline.broker][int(away.argmin())]
        own = records.timelines[near]
        nearest = np.abs(own.clock_ms - timeline.clock_ms[0]).argmin()
        error = own.clock_ms[nearest] - offsets[near].common(own.local_ms[nearest])
        found[number] = ClockOffset(
            timeline.local_ms[:1], timeline.clock_ms[:1] - timeline.local_ms[:1] - error
        )
    return found


def _alone(records: Records, offsets: dict[int, ClockOffset]) -> dict[int, ClockOffset]:
    """For brokers that cannot be compared: their own clock is right most of the time."""
    return {
        number: ClockOffset(
            timeline.local_ms[:1], np.array([np.median(timeline.clock_ms - timeline.local_ms)])
        )
        for number, timeline in enumerate(records.timelines)
        if number not in offsets
    }


def _errors(
    records: Records, common: Floats, error: Floats, tolerance_ms: float
) -> tuple[ClockError, ...]:
    """The clock errors with their times; the largest first."""
    runs = []
    for number, timeline in enumerate(records.timelines):
        own = records.of_timeline(number)
        for run in _runs(error[own], tolerance_ms):
            at_ms, ahead = common[own][run], float(np.median(error[own][run]))
            runs.append(ClockError(timeline.broker, int(at_ms[0]), int(at_ms[-1]), ahead))
    found: list[ClockError] = []
    for one in sorted(runs, key=lambda one: (one.broker, one.from_ms)):
        before = found[-1] if found else None
        is_same = before is not None and before.broker == one.broker
        if before is not None and is_same and abs(before.ahead_ms - one.ahead_ms) <= tolerance_ms:
            # A restart does not set the clock.
            found[-1] = replace(before, to_ms=one.to_ms)
        else:
            found.append(one)
    off = [one for one in found if abs(one.ahead_ms) > tolerance_ms]
    return tuple(sorted(off, key=lambda one: (-abs(one.ahead_ms), one.from_ms, one.broker)))


def _runs(error: Floats, tolerance_ms: float) -> Iterator[slice]:
    """Stretches in which an error stays within the tolerance of its first value."""
    bounds, start = [0], 0
    while start < len(error):
        away = np.flatnonzero(np.abs(error[start:] - error[start]) > tolerance_ms)
        start = start + int(away[0]) if len(away) else len(error)
        bounds.append(start)
    for first, end in pairwise(bounds):
        yield slice(first, end)
