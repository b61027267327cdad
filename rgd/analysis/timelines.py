"""What brokers' records say of one another's clocks, as arrays.

A *timeline* is one incarnation of a broker: the sequences of its records, what its wall clock said and
what its own steady clock said. A *sighting* is an order that no clock can change: a record of one
broker that had received sequence s of another was made after the record that the other made at s.

Law: `later` was made after `earlier` in every sighting, whatever was lost or late on the way. What is not
known for sure (a peer's restart in an old record, a sequence before the log begins) is left out.

A timeline consists of *spans*: in one span both clocks ran at the same pace. A wall clock that jumps
against the monotonic one was set, or the machine slept, which only a comparison with other brokers shows.
What the orders come to is `rgd.analysis.clocks`'s business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.chunks import Floats
from rgd.analysis.continuity import low_bits
from rgd.core.exchange.columns import Ints

#: Jumps of one incarnation's clock that begin spans; of more the largest count.
JUMPS_MAX: Final = 64

#: More than there are numbers of incarnations.
_NAME_STEP: Final = 1 << 33


@dataclass(frozen=True, slots=True)
class Timeline:
    """The records of one incarnation of a broker, in the order of their sequences."""

    broker: str
    #: 16 hexadecimal digits.
    incarnation: str
    sequence: Ints
    #: Wall clock, ms since 1970.
    clock_ms: Floats
    #: The broker's own monotonic clock, ms.
    local_ms: Floats

    @property
    def key(self) -> tuple[str, str]:
        """Broker and incarnation."""
        return self.broker, self.incarnation


@dataclass(frozen=True, slots=True)
class Records:
    """The records of all timelines, one after the other."""

    timelines: tuple[Timeline, ...]
    #: Of each record: its timeline, its span (numbered through all timelines), its clocks.
    timeline: Ints
    span: Ints
    local_ms: Floats
    clock_ms: Floats
    #: Of each sighting the two records, by their numbers: `later` was made after `earlier`.
    later: Ints
    earlier: Ints

    def of_timeline(self, number: int) -> slice:
        """The records of a timeline."""
        return _slice_of(self.timeline, number)

    def of_span(self, number: int) -> slice:
        """The records of a span."""
        return _slice_of(self.span, number)

    @property
    def spans(self) -> int:
        """How many spans there are."""
        return int(self.span[-1]) + 1 if len(self.span) else 0


def gather_records(headers: Any, tolerance_ms: float) -> Records:
    """Put together what the segments' headers say.

    Args:
        headers: a `pyarrow.Table` of `schema.HEADERS`.
        tolerance_ms: a wall clock that jumps by more than this against the monotonic one begins a span.
    """
    timelines, place = _timelines(headers)
    sizes = [len(one.sequence) for one in timelines]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    spans = [_spans(one, tolerance_ms) for one in timelines]
    first = np.concatenate([[0], np.cumsum([one[-1] + 1 for one in spans])])
    later, earlier = _sightings(headers, timelines, starts, place)
    return Records(
        timelines=tuple(timelines),
        timeline=np.repeat(np.arange(len(timelines)), sizes),
        span=_joined([one + number for one, number in zip(spans, first, strict=False)], np.int64),
        local_ms=_joined([one.local_ms for one in timelines], np.float64),
        clock_ms=_joined([one.clock_ms for one in timelines], np.float64),
        later=later,
        earlier=earlier,
    )


def _slice_of(numbers: Ints, number: int) -> slice:
    """Where a number stands in ascending ones."""
    first, end = np.searchsorted(numbers, [number, number + 1])
    return slice(int(first), int(end))


def _timelines(headers: Any) -> tuple[list[Timeline], Ints]:
    """The timelines, and the number that each row of the table has among all of their records."""
    brokers = headers["broker"].to_pylist()
    keys = list(zip(brokers, headers["incarnation"].to_pylist(), strict=True))
    names = sorted(set(keys))
    number_of = {key: number for number, key in enumerate(names)}
    owner = np.array([number_of[key] for key in keys], np.int64)
    sequence = headers["sequence"].to_numpy().astype(np.int64)
    order = np.lexsort((sequence, owner))
    owner, sequence = owner[order], sequence[order]
    # A record in several parts has one sequence: the first stands for all.
    is_new = np.ones(len(order), bool)
    is_new[1:] = (owner[1:] != owner[:-1]) | (sequence[1:] != sequence[:-1])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(is_new) - 1
    rows = order[is_new]
    owner, sequence = owner[is_new], sequence[is_new]
    clock = headers["clock_ms"].to_numpy().astype(np.float64)[rows]
    local = headers["local_ms"].to_numpy()[rows]
    bounds = np.searchsorted(owner, np.arange(len(names) + 1))
    timelines = []
    for number, (broker, incarnation) in enumerate(names):
        own = slice(bounds[number], bounds[number + 1])
        timelines.append(Timeline(broker, incarnation, sequence[own], clock[own], local[own]))
    return timelines, place


def _spans(timeline: Timeline, tolerance_ms: float) -> Ints:
    """The span that each record is of, counted from 0."""
    gained = np.abs(np.diff(timeline.clock_ms - timeline.local_ms))
    if (gained > tolerance_ms).sum() > JUMPS_MAX:
        tolerance_ms = float(np.partition(gained, -JUMPS_MAX - 1)[-JUMPS_MAX - 1])
    return np.concatenate([[0], np.cumsum(gained > tolerance_ms)]).astype(np.int64)


def _sightings(
    headers: Any, timelines: Sequence[Timeline], starts: Ints, place: Ints
) -> tuple[Ints, Ints]:
    """Every peer's sequence that a record had received, as the peer's last record up to it."""
    lists = {
        name: headers[name].combine_chunks()
        for name in ("peers", "peer_incarnations", "peer_sequences")
    }
    counts = lists["peers"].value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    later = place[np.repeat(np.arange(len(counts)), counts)]
    incarnation = lists["peer_incarnations"].flatten().to_numpy().astype(np.int64)
    sequence = lists["peer_sequences"].flatten().to_numpy().astype(np.int64)
    encoded = lists["peers"].flatten().dictionary_encode()
    name = encoded.indices.to_numpy().astype(np.int64)
    names = encoded.dictionary.to_pylist()
    code = name * _NAME_STEP + incarnation
    order = np.argsort(code, kind="stable")
    codes, first = np.unique(code[order], return_index=True)
    timeline_of = _timelines_seen(timelines)
    found_later, found_earlier = [], []
    for one, seen in zip(codes.tolist(), np.split(order, first)[1:], strict=True):
        broker, low = names[one // _NAME_STEP], one % _NAME_STEP
        number = timeline_of.get((broker, low))
        if number is None:
            continue
        row = np.searchsorted(timelines[number].sequence, sequence[seen], side="right") - 1
        is_known = row >= 0
        found_later.append(later[seen[is_known]])
        found_earlier.append(starts[number] + row[is_known])
    return _joined(found_later, np.int64), _joined(found_earlier, np.int64)


def _timelines_seen(timelines: Sequence[Timeline]) -> dict[tuple[str, int], int]:
    """By what a record says of a peer, which timeline it means."""
    return {(one.broker, low_bits(one.incarnation)): place for place, one in enumerate(timelines)}


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype)
