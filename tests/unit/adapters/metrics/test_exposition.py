"""A scrape shows exactly what is declared, in both formats, read by the client's own strict parsers.

Prometheus itself does not run here; the figures' meaning is tested where they are counted.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import parser as openmetrics_parser

from rgd.adapters.metrics import labels
from rgd.adapters.metrics.answer_times import AnswerTimes
from rgd.adapters.metrics.exposition import SLICE, Exposition
from rgd.adapters.metrics.metric import MetricType
from rgd.adapters.metrics.registry import HTTP_REQUEST_SECONDS, METRICS
from rgd.adapters.metrics.series import UndeclaredMetric
from rgd.ports.metrics import Sample

OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5"
#: How the names of declared metrics begin.
OURS = ("rgd_", "pulsar_")
ORDERS = ("gold", "publish", "messages")


class Figures:
    """A source whose figures the test sets."""

    def __init__(self) -> None:
        self.now: list[Sample] = []

    def samples(self) -> Iterable[Sample]:
        return list(self.now)


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
def exposition(figures: Figures) -> Exposition:
    return Exposition(figures)


@pytest.fixture
def answers(exposition: Exposition) -> AnswerTimes:
    counted = AnswerTimes(HTTP_REQUEST_SECONDS.buckets)
    exposition.read_answers = lambda: counted.counts
    return counted


async def scrape(exposition: Exposition) -> dict[str, Family]:
    body, _ = await exposition.render("")
    return {family.name: family for family in parser.text_string_to_metric_families(body.decode())}


def by_label(family: Family, label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in family.samples}


def strictly_parsed(body: bytes) -> list[Family]:
    parse: Any = openmetrics_parser.text_string_to_metric_families  # It has no types.
    return list(parse(body.decode()))


def one_of_each() -> list[Sample]:
    values = {"group": "gold", "kind": "publish", "dimension": "messages"}
    return [
        Sample(metric.name, tuple(values.get(label, label) for label in metric.labels), 1.5)
        for metric in METRICS
        if metric.type is not MetricType.HISTOGRAM
    ]


async def test_every_declared_metric_is_shown_under_its_exact_name_and_no_other(
    figures: Figures, exposition: Exposition, answers: AnswerTimes
) -> None:
    figures.now = one_of_each()
    exposition.observe_round(0.002)
    answers.observe_answer("/v1/acquire", 200, 0.0002)
    exposition.observe_backlog_check(0.02)
    families = await scrape(exposition)
    names = {sample.name for family in families.values() for sample in family.samples}
    own = {name for name in names if name.startswith(OURS)}
    expected = {metric.name for metric in METRICS if metric.type is not MetricType.HISTOGRAM}
    for histogram in (one.name for one in METRICS if one.type is MetricType.HISTOGRAM):
        expected |= {f"{histogram}_bucket", f"{histogram}_sum", f"{histogram}_count"}
    assert own == expected


async def test_openmetrics_passes_the_strict_parser_with_the_same_figures(
    figures: Figures, exposition: Exposition, answers: AnswerTimes
) -> None:
    figures.now = one_of_each()
    answers.observe_answer("/v1/acquire", 200, 0.3)
    body, _ = await exposition.render(OPENMETRICS)
    strict = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in strictly_parsed(body)
        for sample in family.samples
        if sample.name.startswith(OURS)
    }
    plain = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in (await scrape(exposition)).values()
        for sample in family.samples
        if sample.name.startswith(OURS)
    }
    assert strict == plain
    assert (
        "rgd_admitted_total",
        (("dimension", "messages"), ("group", "gold"), ("kind", "publish")),
    ) in strict
    assert not any(name.endswith("_created") for name, _ in strict)


@pytest.mark.parametrize(
    "sample",
    [
        Sample("rgd_no_such_thing", (), 1),
        Sample("rgd_admitted", ORDERS, 1),
        Sample("rgd_quota", ("gold",), 1),
        Sample("rgd_round_seconds", (), 1),
        Sample("rgd_subscription_dispatch_throttled_seconds_total", ("standalone",), 1),
    ],
)
async def test_what_nobody_declared_is_a_bug_and_is_reported(
    figures: Figures, exposition: Exposition, sample: Sample
) -> None:
    figures.now = [sample]
    with pytest.raises(UndeclaredMetric, match=sample.name):
        await exposition.render("")
    figures.now = []
    assert await scrape(exposition)


class TestTooManyGroups:
    @pytest.fixture(autouse=True)
    def two_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(labels.BOUNDS, "group", 2)
        monkeypatch.setitem(labels.BOUNDS, "broker", 1)

    @staticmethod
    def admitted(**by_group: float) -> list[Sample]:
        return [
            Sample("rgd_admitted_total", (group, "publish", "messages"), value)
            for group, value in by_group.items()
        ]

    async def admitted_by_group(self, exposition: Exposition) -> dict[str, float]:
        return by_label((await scrape(exposition))["rgd_admitted"], "group")

    async def test_the_rest_is_summed_into_other_which_never_falls(
        self, figures: Figures, exposition: Exposition
    ) -> None:
        figures.now = self.admitted(a=1, b=2, c=30, d=4)
        assert await self.admitted_by_group(exposition) == {"a": 1, "b": 2, "other": 34}
        figures.now = self.admitted(a=1, b=2, d=5)
        assert (await self.admitted_by_group(exposition))["other"] == 34
        figures.now = self.admitted(a=1, b=2, d=9)
        assert (await self.admitted_by_group(exposition))["other"] == 38
        figures.now = self.admitted(a=1, d=9)
        assert await self.admitted_by_group(exposition) == {"a": 1, "other": 38}
        # The series that came free is given away from the next scrape on.
        assert await self.admitted_by_group(exposition) == {"a": 1, "d": 9, "other": 38}


async def test_the_loop_goes_on_while_many_series_are_read_and_written(
    figures: Figures, exposition: Exposition
) -> None:
    name = "rgd_subscription_dispatch_throttled_seconds_total"
    labels_of = ("standalone", "acme", "acme/orders", "persistent://acme/orders/eu")
    figures.now = [Sample(name, (*labels_of, f"s-{at}"), at) for at in range(2000)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    body, _ = await exposition.render("")
    counting.cancel()
    assert body.count(f"\n{name}{{".encode()) == 2000
    assert turns > len(METRICS) + 2 * 2000 / SLICE
