"""Rendering a scrape: the declared metrics, their samples, and the process's own.

Law: a scrape holds up the event loop for `SLICE` samples at a time. It shows exactly the declared names, in the text
format or, where it is asked for, in OpenMetrics. One scrape is rendered at a time.

Histograms are counted as they are observed; everything else is read when it is scraped.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UnknownMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from rgd.adapters.metrics.answer_times import Counts
from rgd.adapters.metrics.labels import TOPIC_BOUNDS
from rgd.adapters.metrics.metric import Metric, MetricType
from rgd.adapters.metrics.registry import (
    BACKLOG_CHECK_SECONDS,
    HTTP_REQUEST_SECONDS,
    METRICS,
    ROUND_SECONDS,
)
from rgd.adapters.metrics.series import Series
from rgd.adapters.metrics.times import family_of
from rgd.ports.metrics import MetricsSource, Sample

#: Samples that are read or written at a time: some 3 ms.
SLICE: Final = 512

#: What OpenMetrics ends with, once.
_END: Final = b"# EOF\n"


class Exposition:
    """The daemon's `/metrics`, and the home of its histograms."""

    def __init__(
        self,
        source: MetricsSource | None = None,
        cluster: str = "standalone",
        topic_bounds: Mapping[str, int] = TOPIC_BOUNDS,
        *,
        split_partitions: bool = False,
    ) -> None:
        self._sources: list[Callable[[], Iterable[Sample]]] = []
        if source is not None:
            self.also(source.samples)
        rounds, checks = _histogram(ROUND_SECONDS), _histogram(BACKLOG_CHECK_SECONDS)
        #: Counts a round that was computed in so many seconds.
        self.observe_round = rounds.observe
        #: Counts a check of all backlogs that took so many seconds.
        self.observe_backlog_check = checks.labels(cluster).observe
        #: Reads how long answers took, from whoever counts them.
        self.read_answers: Callable[[], Counts] = dict
        self._histograms: dict[str, Callable[[], Iterable[Family]]] = {
            BACKLOG_CHECK_SECONDS.name: partial(_without_created, checks),
            ROUND_SECONDS.name: partial(_without_created, rounds),
            HTTP_REQUEST_SECONDS.name: lambda: [
                family_of(HTTP_REQUEST_SECONDS, self.read_answers())
            ],
        }
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)
        self._series = Series(topic_bounds, split_partitions=split_partitions)
        self._turn = asyncio.Lock()

    def also(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Show the samples of another source, too (as `MetricsSource.samples` gives them)."""
        self._sources.append(samples)

    def also_process(self, prefix: str, pid: int) -> None:
        """Show `process_*` of another process, with this prefix."""
        ProcessCollector(prefix, pid=lambda: pid, registry=self._process)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Body and content type of a scrape.

        Args:
            accept: the header, "" where there is none.

        Raises:
            UndeclaredMetric: the source gave what nobody declared.
        """
        encode, content_type = choose_encoder(accept)
        written: list[bytes] = []
        async with self._turn:
            await self._take()
            for metric in METRICS:
                for lines in self._written(metric, encode):
                    written.append(lines)
                    await asyncio.sleep(0)
        # Ends as the format wants it.
        written.append(encode(self._process))
        # Joining many MiB lets the interpreter go, but would hold the loop.
        return await asyncio.to_thread(b"".join, written), content_type

    async def _take(self) -> None:
        self._series.begin()
        samples = chain.from_iterable(samples_of() for samples_of in self._sources)
        while part := list(islice(samples, SLICE)):
            self._series.take(part)
            await asyncio.sleep(0)
        self._series.end()

    def _written(self, metric: Metric, encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
        """The head of a metric, then its lines, some at a time."""
        if metric.type is MetricType.HISTOGRAM:
            yield encode(_Shown(self._histograms[metric.name]())).removesuffix(_END)
            return
        family = _FAMILY_TYPES[metric.type](metric.name, metric.help, labels=metric.labels)
        head = encode(_Shown([family])).removesuffix(_END)
        yield head
        samples = self._series.samples(metric)
        while part := list(islice(samples, SLICE)):
            family.samples = part
            yield encode(_Shown([family])).removesuffix(_END).removeprefix(head)


class _Shown(Collector):
    """Some families, for the client's own writer."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        """The families (prometheus_client's interface)."""
        return self._families


_FAMILY_TYPES: Final[
    dict[MetricType, type[CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily]]
] = {
    MetricType.COUNTER: CounterMetricFamily,
    MetricType.GAUGE: GaugeMetricFamily,
    MetricType.UNKNOWN: UnknownMetricFamily,
}


def _histogram(metric: Metric) -> Histogram:
    return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=None)


def _without_created(histogram: Histogram) -> Iterator[Family]:
    """A histogram's family without `_created`, which is a series more than was declared."""
    for family in histogram.collect():
        family.samples = [
            sample for sample in family.samples if not sample.name.endswith("_created")
        ]
        yield family
