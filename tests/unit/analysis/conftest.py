"""What the tests of the analysis share: from a folder of logs to judged windows, without Spark.

The steps are those that `rgd.analysis.report` lets Spark run, in one process.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rgd.analysis.asked import ALWAYS, Asked, TimeRange
from rgd.analysis.clocks import align_clocks
from rgd.analysis.discovery import find_segments, segments_within
from rgd.analysis.fairness import Fairness, fairness_of, parts_of
from rgd.analysis.findings import summarise
from rgd.analysis.headers import Sampling, segment_headers
from rgd.analysis.log_facts import LogFacts, Stats, gather
from rgd.analysis.reading import segment_pieces
from rgd.analysis.schema import HEADERS, PIECES, arrow
from rgd.analysis.windows import GroupWindows, join

ROUND_MS = 1000.0


class Logs:
    """Some logs, read and reduced."""

    def __init__(
        self,
        folder: Path,
        *,
        window_ms: int = 1000,
        rows_max: int = 200_000,
        within: TimeRange = ALWAYS,
        groups: frozenset[str] = frozenset(),
    ) -> None:
        self.within = within
        self.window_ms = window_ms
        segments = segments_within(find_segments([str(folder)]), within)
        sampling = Sampling()
        headers = [batch for one in segments for batch in segment_headers(one, sampling, within)]
        self.clocks = align_clocks(pa.Table.from_batches(headers, arrow(HEADERS)), ROUND_MS)
        options: Any = {"clocks": self.clocks, "asked": Asked(within, groups), "rows_max": rows_max}
        batches = [
            batch
            for segment in segments
            for batch in segment_pieces(segment, window_ms, round_ms=ROUND_MS, **options)
        ]
        self.stats = [one for one in batches if isinstance(one, Stats)]
        pieces = [one for one in batches if not isinstance(one, Stats)]
        self.pieces = pa.Table.from_batches(pieces, arrow(PIECES))

    def windows(self, group: str = "gold") -> GroupWindows:
        """The windows of one group that publishes."""
        wanted = pa.compute.and_(
            pa.compute.equal(self.pieces["group"], group),
            pa.compute.equal(self.pieces["kind"], "publish"),
        )
        return join(self.pieces.filter(wanted).combine_chunks(), self.window_ms)[0].groups[0]

    def fairness(self, group: str = "gold", dimension: str = "messages") -> Fairness:
        """How fair they were."""
        windows = self.windows(group)
        return fairness_of(windows, dimension, *parts_of([windows]))

    def found(self, group: str = "gold", dimension: str = "messages") -> dict[str, Any]:
        """What there is to say about them."""
        return summarise(
            self.windows(group),
            dimension,
            self.fairness(group, dimension),
            window_ms=self.window_ms,
            round_ms=ROUND_MS,
        )

    def facts(self) -> LogFacts:
        """What the logs are."""
        lengths: Any = {"round_ms": ROUND_MS, "window_ms": self.window_ms}
        return gather(self.stats, **lengths, clocks=self.clocks, within=self.within)


ReadLogs = Callable[..., Any]


@pytest.fixture
def read_logs() -> ReadLogs:
    """Read the logs in a folder: `read_logs(tmp_path, window_ms=1000)`."""
    return Logs
