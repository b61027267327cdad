"""Reads the clocks in a segment's records: a cheap pass before the windows are made.

Each record has its sender, its sequence, two clocks (wall and monotonic) and the last sequence that it
had received of each peer. `rgd.analysis.timelines` joins those of all segments.

Law: the output is bounded by `SAMPLED_BYTES_MAX` over all logs, not by their size. Of large logs
only sampled sequences are kept, `SAMPLE_LENGTH` in a row. Whether a sequence is sampled depends only on its
number, so a broker and its peers keep the same ones, however wrong their clocks are.
Rows are not decoded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.asked import ALWAYS, TimeRange
from rgd.analysis.continuity import incarnation_name
from rgd.analysis.discovery import Segment
from rgd.analysis.schema import HEADERS, arrow
from rgd.analysis.segments import Contents, Logged, read_segment
from rgd.core.units import NS_PER_MS
from rgd.wire.record import LoggedRound

#: Logs of up to this many bytes are read completely; of larger ones about as much is kept.
SAMPLED_BYTES_MAX: Final = 16 * 1024 * 1024

#: Sequences that are kept in a row.
SAMPLE_LENGTH: Final = 32

#: Records in one batch.
_BATCH_RECORDS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Sampling:
    """The kept sequences: the first `SAMPLE_LENGTH` of every `period`."""

    period: int = SAMPLE_LENGTH

    @classmethod
    def of(cls, size: int) -> "Sampling":
        """The sampling for logs of this total size."""
        return cls(SAMPLE_LENGTH * max(1, -(-size // SAMPLED_BYTES_MAX)))

    def holds(self, sequence: int) -> bool:
        """Whether a sequence is kept."""
        return sequence % self.period < SAMPLE_LENGTH


def segment_headers(
    segment: Segment,
    sampling: Sampling,
    within: TimeRange = ALWAYS,
    *,
    contents: Contents | None = None,
) -> Iterator[Any]:
    """The clocks in a segment, as `pyarrow.RecordBatch`es of `schema.HEADERS`; fills `contents` if they are given."""
    kept: list[tuple[Any, ...]] = []
    read = read_segment(
        segment, contents or Contents(segment.name), within, only_headers=sampling.holds
    )
    for item in read:
        if isinstance(item, Logged):
            kept.append(_row(item, _sampled_peers(item.record, sampling)))
        if len(kept) == _BATCH_RECORDS:
            yield _batch(kept)
            kept = []
    if kept:
        yield _batch(kept)


def round_length_ms(headers: Any) -> float:
    """The length of a round: the median of the records'; a second where there is none.

    Args:
        headers: a `pyarrow.Table` of `schema.HEADERS`.
    """
    periods = headers["period_ms"].to_numpy()
    return float(np.median(periods[periods > 0])) if (periods > 0).any() else 1000.0


def logged_rounds(headers: Any, sampling: Sampling, round_ms: float) -> int:
    """About how many rounds long some logs are; time in which nobody logged does not count.

    Each stretch of one sampling period has a kept record of each broker that logged in it.

    Args:
        headers: a `pyarrow.Table` of `schema.HEADERS`.
        sampling: the one that it was read with.
        round_ms: length of a round.
    """
    stretches = np.unique(headers["clock_ms"].to_numpy() // (sampling.period * round_ms))
    return sampling.period * len(stretches)


def _sampled_peers(record: LoggedRound, sampling: Sampling) -> list[tuple[str, int, int]]:
    """Name, incarnation and last sequence of each peer whose sequence is kept."""
    return [
        (broker, incarnation, sequence)
        for (broker, sequence), incarnation in zip(
            record.peers, record.peer_incarnations, strict=True
        )
        # 0: no report of it was received yet.
        if sequence > 0 and sampling.holds(sequence)
    ]


def _row(logged: Logged, seen: Sequence[tuple[str, int, int]]) -> tuple[Any, ...]:
    record = logged.record
    return (
        record.sender.broker,
        incarnation_name(record.sender.incarnation),
        record.sequence,
        logged.clock_ms,
        record.ended_ns / NS_PER_MS,
        record.period_ns / NS_PER_MS,
        [one[0] for one in seen],
        [one[1] for one in seen],
        [one[2] for one in seen],
    )


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    schema = arrow(HEADERS)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
