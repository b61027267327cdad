"""What a segment says of clocks, and how much of it is kept.

Not covered: what is made of it (test_clocks).
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rgd.analysis.clocks import align_clocks
from rgd.analysis.discovery import Segment
from rgd.analysis.headers import (
    SAMPLE_LENGTH,
    SAMPLED_BYTES_MAX,
    Sampling,
    logged_rounds,
    segment_headers,
)
from rgd.analysis.schema import HEADERS, arrow
from tests.support.log_maker import LogMaker, Usage

GOLD = Usage("gold", admitted=10, wanted=20, quota=100)


def headers(*segments: Path, sampling: Sampling | None = None) -> Any:
    batches = [
        batch
        for segment in segments
        for batch in segment_headers(Segment.of(segment), sampling or Sampling())
    ]
    return pa.Table.from_batches(batches, arrow(HEADERS))


def pair(folder: Path, rounds: int, ahead_ms: int = 0) -> list[Path]:
    """The logs of two brokers that receive one another's reports."""
    first, second = (LogMaker(folder / name, name) for name in ("b1", "b2"))
    first.peers, second.peers, second.clock_ahead_ms = [second], [first], ahead_ms
    for _ in range(rounds):
        first.round(GOLD)
        second.round(GOLD)
    return [first.close(), second.close()]


@pytest.mark.slow
def test_what_is_kept_of_large_logs_has_a_bound_and_still_tells_the_clocks(tmp_path: Path) -> None:
    sampling = Sampling.of(8 * SAMPLED_BYTES_MAX)
    segments = pair(tmp_path, 1200, ahead_ms=3_600_000)

    kept = headers(*segments, sampling=sampling)

    assert sampling.period == 8 * SAMPLE_LENGTH
    assert Sampling.of(0).period == Sampling.of(SAMPLED_BYTES_MAX).period == SAMPLE_LENGTH
    assert len(kept) <= 2 * 1200 / 8 + 4 * SAMPLE_LENGTH
    (found,) = align_clocks(kept, 1000.0).errors
    assert (found.broker, round(found.ahead_ms / 10_000)) == ("b2", 360)


@pytest.mark.parametrize("size", [0, 3 * SAMPLED_BYTES_MAX])
def test_rounds_are_counted_without_the_time_in_which_nobody_logged(
    tmp_path: Path, size: int
) -> None:
    maker = LogMaker(tmp_path, "b1")
    for _ in range(2):
        for _ in range(500):
            maker.round(GOLD)
        maker.silent(20_000)
    sampling = Sampling.of(size)

    rounds = logged_rounds(headers(maker.close(), sampling=sampling), sampling, 1000.0)

    assert 1000 <= rounds <= 1000 + 4 * sampling.period
