"""docs/metrics.md and the declarations agree, and the declarations keep the house's rules.

Not covered: whether a metric's figures are right; that is tested where they are counted.
"""

import re
import runpy
from pathlib import Path

import pytest

from rgd.adapters.metrics.labels import BOUNDS, TOPIC_BOUNDS
from rgd.adapters.metrics.metric import Bound, Metric, MetricType
from rgd.adapters.metrics.reference import page
from rgd.adapters.metrics.registry import METRICS

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_metric_has_its_row() -> None:
    rows = re.findall(r"^\| `((?:rgd|pulsar)_\w+)` \|", page(), re.MULTILINE)
    assert rows == [metric.name for metric in METRICS]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_labels_keep_the_rules(metric: Metric) -> None:
    assert re.fullmatch(r"(rgd|pulsar)_[a-z_]+", metric.name)
    # Pulsar has counters without `_total`.
    assert (metric.type is MetricType.UNKNOWN) <= metric.name.startswith("pulsar_")
    assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER)
    assert metric.help.endswith(".")
    known = {*BOUNDS, *(TOPIC_BOUNDS if metric.bound is Bound.TOPICS else ())}
    assert metric.bound is Bound.SOURCE or set(metric.labels) <= known
    assert bool(metric.buckets) == (metric.type is MetricType.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_module_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("rgd.adapters.metrics.reference", run_name="__main__")
    assert capsys.readouterr().out == page()
