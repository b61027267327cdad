"""Reads the clocks in a segment's records: a cheap pass before the windows are made.

Each record has its sender, its sequence, two clocks (wall and monotonic) and the last sequence that it
had received of each peer. `rgd.analysis.timelines` joins those of all segments.

Law: the output is bounded by `SAMPLED_BYTES_MAX` over all logs, not by their size. Of large logs
only sampled sequences are kept, `SAMPLE_LENGTH` in a row. Whether a sequence is sampled depends only on its
number, so a broker and its peers keep the same ones, however wrong their clocks are.
Rows are not decoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.asked import ALWAYS, TimeRange
from rgd.analysis.discovery import Segment
from rgd.analysis.record_columns import clock_columns
from rgd.analysis.schema import HEADERS, batch_of
from rgd.analysis.segments import Contents, Logged, read_segment

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

    def sees(sequence: int) -> bool:
        return sequence > 0 and sampling.holds(sequence)

    kept: list[Logged] = []
    read = read_segment(
        segment, contents or Contents(segment.name), within, only_headers=sampling.holds
    )
    for item in read:
        if isinstance(item, Logged):
            kept.append(item)
        if len(kept) == _BATCH_RECORDS:
            yield batch_of(HEADERS, clock_columns(kept, sees))
            kept = []
    if kept:
        yield batch_of(HEADERS, clock_columns(kept, sees))


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
