"""Rendering a scrape: the declared metrics, their samples, and the process's own.

Law: a scrape never holds up the event loop (80,000 samples take a second to render) and shows
exactly the declared names, in the text format or, where it is asked for, in OpenMetrics.

`render` takes the samples on the loop and does the rest in one thread of its own, one scrape after
the other. Histograms are counted as they are observed; everything else is read when it is scraped.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from rgd.adapters.metrics.labels import BOUNDS, OTHER, Carried, Places
from rgd.adapters.metrics.registry import (
    BY_NAME,
    HTTP_REQUEST_SECONDS,
    METRICS,
    ROUND_SECONDS,
    Fold,
    Metric,
    MetricType,
)
from rgd.errors import RgdError
from rgd.ports.metrics import MetricsSource, Sample

_Labels = tuple[str, ...]

_FOLDS: Final[dict[Fold, Callable[[float, float], float]]] = {
    Fold.SUM: lambda left, right: left + right,
    Fold.MAX: max,
}


class UndeclaredMetric(RgdError):
    """A source gave a sample that no metric declares: a bug of the source."""


class Exposition:
    """The daemon's `/metrics`, and the home of its histograms."""

    def __init__(self, source: MetricsSource) -> None:
        self._sources: list[Callable[[], Iterable[Sample]]] = [source.samples]
        self._round = _histogram(ROUND_SECONDS)
        self._http_request = _histogram(HTTP_REQUEST_SECONDS)
        self._families = _Families(
            {ROUND_SECONDS.name: self._round, HTTP_REQUEST_SECONDS.name: self._http_request}
        )
        self._registry = CollectorRegistry()
        self._registry.register(self._families)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._turn = asyncio.Lock()
        # A thread of its own: a scraper that hangs up leaves at most this one busy.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rgd-metrics")

    def also(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Show the samples of another source, too (as `MetricsSource.samples` gives them)."""
        self._sources.append(samples)

    def observe_round(self, seconds: float) -> None:
        """Count a round that was reckoned in so long."""
        self._round.observe(seconds)

    def observe_http_request(self, seconds: float) -> None:
        """Count a request that was answered in so long."""
        self._http_request.observe(seconds)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Body and content type of a scrape.

        Raises:
            UndeclaredMetric: the source gave what nobody declared.
        """
        async with self._turn:
            samples = chain.from_iterable([samples_of() for samples_of in self._sources])
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self._encode, samples, accept)

    def close(self) -> None:
        """Let the thread go. Idempotent."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, samples: Iterable[Sample], accept: str) -> tuple[bytes, str]:
        self._families.take(samples)
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _Families(Collector):
    """The declared metrics with the samples of one scrape."""

    def __init__(self, histograms: Mapping[str, Histogram]) -> None:
        self._histograms = histograms
        self._places = {label: Places(most) for label, most in BOUNDS.items()}
        self._carried: dict[tuple[str, _Labels], Carried] = {}
        self._values: dict[str, dict[_Labels, float]] = {}

    def take(self, samples: Iterable[Sample]) -> None:
        """Bound the labels, and keep the values for `collect`."""
        taken = [_checked(sample) for sample in samples]
        self._settle(taken)
        values: dict[str, dict[_Labels, float]] = {metric.name: {} for metric in METRICS}
        for name, labels, value in taken:
            metric, series = BY_NAME[name], values[name]
            shown = self._shown(metric, labels)
            held = series.get(shown)
            series[shown] = value if held is None else _FOLDS[metric.fold](held, value)
        self._carry(values)
        self._values = values

    def collect(self) -> Iterator[Family]:
        """The families in the order of their declaration (prometheus_client's interface)."""
        for metric in METRICS:
            if metric.type is MetricType.HISTOGRAM:
                yield from _without_created(self._histograms[metric.name])
            else:
                family = _FAMILY_TYPES[metric.type](metric.name, metric.help, labels=metric.labels)
                for labels, value in self._values.get(metric.name, {}).items():
                    family.add_metric(labels, value)
                yield family

    def _settle(self, samples: Iterable[Sample]) -> None:
        present: dict[str, dict[str, None]] = {label: {} for label in self._places}
        for name, labels, _ in samples:
            for label, value in zip(BY_NAME[name].labels, labels, strict=True):
                present[label][value] = None
        for label, places in self._places.items():
            places.settle(present[label])

    def _shown(self, metric: Metric, labels: _Labels) -> _Labels:
        return tuple(
            self._places[label].shown(value)
            for label, value in zip(metric.labels, labels, strict=True)
        )

    def _carry(self, values: dict[str, dict[_Labels, float]]) -> None:
        """Keep the counters of `other` from falling, also when nobody is in it any more."""
        for name, series in values.items():
            if BY_NAME[name].type is MetricType.COUNTER:
                for labels in series:
                    if OTHER in labels and (name, labels) not in self._carried:
                        self._carried[name, labels] = Carried()
        for (name, labels), carried in self._carried.items():
            values[name][labels] = carried.total(values[name].get(labels, 0.0))


_FAMILY_TYPES: Final[dict[MetricType, type[CounterMetricFamily | GaugeMetricFamily]]] = {
    MetricType.COUNTER: CounterMetricFamily,
    MetricType.GAUGE: GaugeMetricFamily,
}


def _checked(sample: Sample) -> Sample:
    metric = BY_NAME.get(sample.name)
    if metric is None or metric.type is MetricType.HISTOGRAM:
        raise UndeclaredMetric(f"{sample.name} is not a metric that samples may have")
    if len(sample.labels) != len(metric.labels):
        raise UndeclaredMetric(f"{sample.name} has labels {metric.labels}, got {sample.labels}")
    return sample


def _histogram(metric: Metric) -> Histogram:
    return Histogram(metric.name, metric.help, buckets=metric.buckets, registry=None)


def _without_created(histogram: Histogram) -> Iterator[Family]:
    """A histogram's family without `_created`, which is a series more than was declared."""
    for family in histogram.collect():
        family.samples = [
            sample for sample in family.samples if not sample.name.endswith("_created")
        ]
        yield family
