"""Figures about the daemon: who has them, and who shows them.

Law: the daemon does not know Prometheus. A `MetricsSource` gives plain values under names that
`rgd.adapters.metrics.registry` declares; a `MetricsPage` makes the answer to a scrape of them.
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
    """Has figures to tell."""

    def samples(self) -> Iterable[Sample]:
        """Every figure as it stands now.

        Called on the event loop at each scrape, so it returns promptly. What it returns is iterated
        later and in another thread: it must not read anything that the loop still changes.
        """


class MetricsPage(Protocol):
    """Answers `GET /metrics`."""

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Body and content type for a request with this `Accept` header ("" where it has none)."""
