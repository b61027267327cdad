"""What brokers' records say of one another's clocks, as arrays.

A *timeline* is one incarnation of a broker: the sequences of its records, what its wall clock said and
what its own steady clock said. A *sighting* is an order that no clock can change: a record of one
broker that had received sequence s of another was made after the record that the other made at s.

Law: `later` was made after `earlier` in every sighting, whatever was lost or late on the way. What is not
known for sure (a peer's restart in an old record, a sequence before the log begins) is left out.

A timeline consists of *spans*: in one span both clocks ran at the same pace. A wall clock that jumps
against the monotonic one was set, or the machine slept, which only a comparison with other brokers shows.
`rgd.analysis.headers` reads what is put together here, `clock_offsets` and `clocks` compare it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.continuity import low_bits
from rgd.analysis.row_columns import Floats
from rgd.core.exchange.columns import Ints

#: Jumps of one incarnation's clock that begin spans; of more the largest count.
JUMPS_MAX: Final = 64

#: More than there are lower halves of incarnations, and than a broker has rounds; eight million timelines have codes.
_INCARNATIONS: Final = 1 << 32
_SEQUENCES: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Records:
    """The records of all timelines, one after the other, each in the order of its sequences."""

    #: Broker and incarnation (16 hexadecimal digits) of each timeline.
    timelines: tuple[tuple[str, str], ...]
    #: [records] the timeline, by number; the span, numbered through all timelines; the sequence.
    timeline: Ints
    span: Ints
    sequence: Ints
    #: [records] the broker's monotonic clock, ms, and its wall clock, ms since 1970.
    local_ms: Floats
    clock_ms: Floats
    #: [sightings] two records, by number: `later` was made after `earlier`.
    later: Ints
    earlier: Ints

    @property
    def first(self) -> Ints:
        """[spans] the first record."""
        return np.flatnonzero(np.diff(self.span, prepend=-1))

    def of_timeline(self, number: int) -> slice:
        """The records of a timeline."""
        first, end = np.searchsorted(self.timeline, [number, number + 1])
        return slice(int(first), int(end))


def gather_records(headers: Any, tolerance_ms: float) -> Records:
    """Put together what the segments' headers say.

    Args:
        headers: a `pyarrow.Table` of `schema.HEADERS`.
        tolerance_ms: a wall clock that jumps by more than this against the monotonic one begins a span.
    """
    keys = [*zip(headers["broker"].to_pylist(), headers["incarnation"].to_pylist(), strict=True)]
    timelines = tuple(sorted(set(keys)))
    number_of = {key: number for number, key in enumerate(timelines)}
    timeline = np.array([number_of[key] for key in keys], np.int64)
    # A record in several parts has one sequence: the first stands for all.
    codes, row, record = np.unique(
        _codes(timeline, headers["sequence"].to_numpy()), return_index=True, return_inverse=True
    )
    clock_ms = headers["clock_ms"].to_numpy().astype(np.float64)[row]
    local_ms = headers["local_ms"].to_numpy()[row]
    later, peer, sequence = _seen(headers, timelines, record)
    earlier = np.searchsorted(codes, _codes(peer, sequence), side="right") - 1
    # What was seen of a peer before its first record, or of one without any, says nothing.
    is_known = (peer >= 0) & (earlier >= 0) & (timeline[row[earlier]] == peer)
    return Records(
        timelines,
        timeline[row],
        _spans(timeline[row], clock_ms - local_ms, tolerance_ms),
        codes % _SEQUENCES,
        local_ms,
        clock_ms,
        later[is_known],
        earlier[is_known],
    )


def _codes(timeline: Ints, sequence: Ints) -> Ints:
    """One number for a timeline and a sequence, in the order of both."""
    return timeline * _SEQUENCES + np.minimum(sequence, _SEQUENCES - 1)


def _spans(timeline: Ints, ahead_ms: Floats, tolerance_ms: float) -> Ints:
    """[records] the span of each, by how far its wall clock was ahead of its monotonic one."""
    begins = np.diff(timeline, prepend=-1) != 0
    gained = np.where(begins, 0.0, np.abs(np.diff(ahead_ms, prepend=0.0)))
    jumps = np.flatnonzero(gained > tolerance_ms)
    jumps = jumps[np.lexsort((-gained[jumps], timeline[jumps]))]
    rank = np.arange(len(jumps)) - np.searchsorted(timeline[jumps], timeline[jumps])
    begins[jumps[rank < JUMPS_MAX]] = True
    return np.cumsum(begins) - 1


def _seen(
    headers: Any, timelines: tuple[tuple[str, str], ...], record: Ints
) -> tuple[Ints, Ints, Ints]:
    """Which records had received what: the record, the peer's timeline (-1: it has none), the sequence."""
    of_peer = {
        (broker, low_bits(incarnation)): number
        for number, (broker, incarnation) in enumerate(timelines)
    }
    peers, incarnations, sequences = (
        headers[name].combine_chunks() for name in ("peers", "peer_incarnations", "peer_sequences")
    )
    encoded = peers.flatten().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    code = encoded.indices.to_numpy().astype(np.int64) * _INCARNATIONS
    codes, place = np.unique(code + incarnations.flatten().to_numpy(), return_inverse=True)
    known = [
        of_peer.get((names[one // _INCARNATIONS], one % _INCARNATIONS), -1)
        for one in codes.tolist()
    ]
    peer = np.array(known, np.int64)[place]
    return np.repeat(record, peers.value_lengths().to_numpy()), peer, sequences.flatten().to_numpy()
