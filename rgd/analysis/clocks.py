"""Computes the error of each broker's wall clock from the order of received messages.

`rgd.analysis.clock_offsets` compares the brokers' monotonic clocks by the order of received messages. A wall
clock is then compared with the common time.

Law: times are changed only where a clock was off by more than `TOLERANCE_ROUNDS`, then for the whole
incarnation. They are then right to about a round, and keep their order.

A span of a timeline begins where the wall clock gained on the monotonic one. Each span is aligned by itself.
One without bounds of its own continues its neighbour by the monotonic clock. An incarnation without
contact has the clock error of the same broker's nearest other one.

The data do not show which clocks are right. The error that most brokers share counts as none. Of two
brokers that differ, the first by name counts as right.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rgd.analysis.clock_offsets import find_offsets
from rgd.analysis.continuity import incarnation_name
from rgd.analysis.row_columns import Floats
from rgd.analysis.timelines import Records, gather_records
from rgd.core.exchange.messages import RoundRecord
from rgd.core.units import NS_PER_MS
from rgd.wire.frame import Entry
from rgd.wire.record import LoggedRound

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
class ClockOffset:
    """How much is to be added to a broker's own clock from some of its moments on; ms."""

    from_ms: Floats
    add_ms: Floats

    def common_ms(self, local_ms: float) -> float:
        """The common time of a moment of the broker's own clock."""
        place = int(np.searchsorted(self.from_ms, local_ms, side="right")) - 1
        return local_ms + float(self.add_ms[max(0, place)])


@dataclass(frozen=True, slots=True)
class Clocks:
    """The findings about the clocks of some logs."""

    #: For brokers and incarnations with wrong times.
    offsets: dict[tuple[str, str], ClockOffset]
    errors: tuple[ClockError, ...]
    #: Brokers whose clocks cannot be compared with the others'.
    unaligned: tuple[str, ...]
    #: Brokers whose clocks were off and whose times stay as stamped, because they come from a lake.
    uncorrected: tuple[str, ...] = ()

    def time_of(self, entry: Entry, record: LoggedRound | RoundRecord) -> int:
        """The time of a record, ms since 1970: as stamped, unless that clock was off."""
        if not self.offsets:
            return entry.timestamp
        sender = record.sender
        offset = self.offsets.get((sender.broker, incarnation_name(sender.incarnation)))
        if offset is None:
            return entry.timestamp
        return max(0, round(offset.common_ms(record.ended_ns / NS_PER_MS)))

    def as_stamped(self) -> "Clocks":
        """What is known of times that are not corrected."""
        off = {one.broker for one in self.errors}
        return Clocks({}, (), self.unaligned, tuple(sorted(off)))


#: No findings: times are as stamped.
AS_STAMPED: Final = Clocks({}, (), ())


def align_clocks(headers: Any, round_ms: float) -> Clocks:
    """Find how far the clocks were off, from a `pyarrow.Table` of `schema.HEADERS`."""
    return align(gather_records(headers, TOLERANCE_ROUNDS * round_ms), round_ms)


def align(records: Records, round_ms: float) -> Clocks:
    """Find how far the brokers' clocks were off; `round_ms` is the length of a round."""
    if not records.timelines:
        return AS_STAMPED
    tolerance_ms = TOLERANCE_ROUNDS * round_ms
    offsets = find_offsets(records, round_ms)
    owner = records.timeline[records.first]
    spans = [owner == number for number in range(len(records.timelines))]
    for own in spans:
        offsets[own] = _continued(offsets[own])
    known = np.unique(owner[np.isfinite(offsets)]).tolist()
    offsets += _shared_error(records, offsets, tolerance_ms)
    for number in set(range(len(spans))) - set(known):
        offsets[spans[number]] = _of_kin(records, offsets, number, known)
    common = records.local_ms + offsets[records.span]
    error = records.clock_ms - common
    brokers = {broker for broker, _ in records.timelines}
    aligned = {records.timelines[number][0] for number in known}
    if len(aligned) == 1 and len(brokers) > 1:
        aligned = set()
    off = np.unique(records.timeline[np.abs(error) > tolerance_ms]).tolist()
    begin_ms = records.local_ms[records.first]
    return Clocks(
        {
            records.timelines[number]: ClockOffset(begin_ms[own], offsets[own])
            for number in off
            for own in (spans[number],)
        },
        _errors(records, common, error, tolerance_ms),
        tuple(sorted(brokers - aligned)),
    )


def _continued(offsets: Floats) -> Floats:
    """The offsets of a timeline's spans; one without goes on by the clock of the span before it, else of the next."""
    known = np.flatnonzero(np.isfinite(offsets))
    if not len(known):
        return offsets
    before = np.searchsorted(known, np.arange(len(offsets)), side="right") - 1
    return offsets[known[np.maximum(0, before)]]


def _weights(records: Records) -> Floats:
    """One error for each broker, so that all count the same; the first by name decides a tie."""
    _, index = np.unique([broker for broker, _ in records.timelines], return_inverse=True)
    broker = index[records.timeline]
    weight = 1.0 / np.bincount(broker)[broker]
    return np.where(broker == 0, weight * 1.001, weight)


def _shared_error(records: Records, offsets: Floats, tolerance_ms: float) -> float:
    """The clock error that most brokers share, to within the tolerance; it counts as none."""
    error = records.clock_ms - records.local_ms - offsets[records.span]
    order = np.argsort(error)[: np.count_nonzero(np.isfinite(error))]
    error, total = error[order], np.concatenate([[0.0], np.cumsum(_weights(records)[order])])
    end = np.searchsorted(error, error + tolerance_ms, side="right")
    first = int(np.argmax(np.round(total[end] - total[:-1], 9)))
    return float(np.median(error[first : end[first]]))


def _of_kin(records: Records, offsets: Floats, number: int, known: list[int]) -> float:
    """The offset of an incarnation without contact: the clock error is that of the broker's nearest other one.

    Without another one the broker's own clock is right most of the time.
    """
    ahead_ms = records.clock_ms - records.local_ms
    own = records.of_timeline(number)
    broker, _ = records.timelines[number]
    kin = [one for one in known if records.timelines[one][0] == broker]
    if not kin:
        return float(np.median(ahead_ms[own]))
    its = np.flatnonzero(np.isin(records.timeline, kin))
    nearest = its[np.abs(records.clock_ms[its] - records.clock_ms[own.start]).argmin()]
    return float(ahead_ms[own.start] - ahead_ms[nearest] + offsets[records.span[nearest]])


def _errors(
    records: Records, common: Floats, error: Floats, tolerance_ms: float
) -> tuple[ClockError, ...]:
    """The clock errors with their times; the largest first."""
    found: list[ClockError] = []
    bounds = pairwise([*records.first.tolist(), len(records.span)])
    spans = [
        ClockError(
            records.timelines[records.timeline[begin]][0],
            int(common[begin]),
            int(common[end - 1]),
            float(np.median(error[begin:end])),
        )
        for begin, end in bounds
    ]
    for one in sorted(spans, key=lambda one: (one.broker, one.from_ms)):
        before = found[-1] if found else None
        is_same = before is not None and before.broker == one.broker
        if before is not None and is_same and abs(before.ahead_ms - one.ahead_ms) <= tolerance_ms:
            # A restart does not set the clock.
            found[-1] = replace(before, to_ms=one.to_ms)
        else:
            found.append(one)
    off = [one for one in found if abs(one.ahead_ms) > tolerance_ms]
    return tuple(sorted(off, key=lambda one: (-abs(one.ahead_ms), one.from_ms, one.broker)))
