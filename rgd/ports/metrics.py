"""Interfaces for the daemon's metrics: their source and their page.

Law: the daemon does not know Prometheus. A `MetricsSource` returns plain values under names that
`rgd.adapters.metrics.registry` declares. A `MetricsPage` formats them for a scrape.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Sample(NamedTuple):
    """One figure now. Counters are totals since the start."""

    #: As declared, `_total` included.
    name: str
    #: Label values, in the order in which the metric declares its labels.
    labels: tuple[str, ...]
    value: float


class MetricsSource(Protocol):
    """A source of figures."""

    def samples(self) -> Iterable[Sample]:
        """The current value of every figure.

        Iterated at each scrape, some hundreds at a time, between which the loop goes on: it reads
        nothing that may not change meanwhile, and no single figure takes long.
        """


class MetricsPage(Protocol):
    """Answers `GET /metrics`."""

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Body and content type for a request with this `Accept` header ("" where it has none)."""
