"""What every test run keeps: Hypothesis profiles, honest skips, time for the heavy tests.

Skips are counted and their reasons printed on the last line of the run, so that a green run cannot
hide that half of it did not happen. Where `CI` is set, a skipped test with the marker pulsar,
embedded, spark or e2e is a failure, whichever way it skipped, and so is a module that skips itself.
Hypothesis runs derandomised (`gate`) unless HYPOTHESIS_PROFILE=nightly.
Order is random (pytest-randomly); the seed is printed, to run the same order again.
Finding components is in tests/support/components.py, shared fixtures in tests/support/fixtures.py.
"""

import gc
import os
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import components

pytest_plugins = ("tests.support.fixtures",)

#: The first of these tests also pays for fetching and starting its component, once in a run.
HEAVY_MARKERS = frozenset({"pulsar", "spark", "e2e"})
HEAVY_TIMEOUT_S = 2400
#: What is asked of a daemon, of Pulsar and of the embedded broker's start may take so long in a heavy test.
PATIENT_S = 60.0
PATIENT = "http.client.CALL", "stock.client.CALL", "exchange.embedded_process.READY"
#: With these, a test is left out of `make check`; `slow` needs nothing but time.
LEFT_OUT = HEAVY_MARKERS | {"slow"}
#: What shares the run's Apache Pulsar, or its Spark, is one worker's; tests that start their own are marked `xdist_group`.
SHARED_BY_GROUP = ("pulsar", "spark")

# Two busy cores make generation slow now and then; that says nothing about the code under test.
_SLOW_MACHINE = (HealthCheck.too_slow,)
settings.register_profile(
    "gate",
    # `make check` has two minutes; the nightly profile looks longer, and elsewhere.
    max_examples=60,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_MACHINE,
)
settings.register_profile(
    "nightly",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_MACHINE,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

# No proxy that the environment names is asked for what tests and their processes serve.
os.environ["no_proxy"] = f"127.0.0.1,localhost,{os.environ.get('no_proxy', '')}"

_skips_key = pytest.StashKey[Counter[str]]()


class _SkipCounter:
    """Counts where the reports come together: with `-n` that is not where the tests run."""

    def __init__(self, skips: Counter[str]) -> None:
        self._skips = skips

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skips[_skip_reason(report.longrepr)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skips[_skip_reason(report.longrepr)] += 1


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_skips_key] = Counter()
    config.pluginmanager.register(_SkipCounter(config.stash[_skips_key]))


def pytest_collection_finish() -> None:
    """Thousands of tests are here to stay: no test's garbage collection walks through them."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A run of heavy tests alone does not import modules without any: of each worker's start it is the half."""
    asked = set(str(config.option.markexpr).split(" or "))
    is_module = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if asked == LEFT_OUT and is_module and not _names_heavy(collection_path) else None


@cache
def _names_heavy(module: Path) -> bool:
    """Whether a module's text, or its folder's conftest, gives tests a marker that leaves them out of `make check`."""
    texts = [module, module.with_name("conftest.py")]
    text = "".join(one.read_text(encoding="utf-8") for one in texts if one.exists())
    return any(f"mark.{name}" in text for name in LEFT_OUT)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    for item in items:
        if any(map(item.get_closest_marker, LEFT_OUT)) and not _names_heavy(item.path):
            raise pytest.UsageError(
                f"{item.nodeid}: write `mark.NAME` out, or a run of heavy tests misses it"
            )
        if _is_heavy(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HEAVY_TIMEOUT_S))
        group = next((name for name in SHARED_BY_GROUP if item.get_closest_marker(name)), None)
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    yield  # to pytest-xdist, which reads the groups here, and to pytest-randomly
    # The longest are heavy: at the end they would leave the other workers without work.
    items.sort(key=lambda item: not _is_heavy(item))


def _is_heavy(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in HEAVY_MARKERS)


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine any process may stand still for longer than rgd waits for one."""
    for name in PATIENT if _is_heavy(request.node) else ():
        monkeypatch.setattr(f"rgd.adapters.{name}_TIMEOUT_S", PATIENT_S)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = _skip_reason(report.longrepr)
        required = any(item.get_closest_marker(name) for name in components.REQUIRED_MARKERS)
        if required and components.in_ci():
            report.outcome = "failed"
            report.longrepr = f"skipped where CI is set: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        reason = _skip_reason(report.longrepr)
        if components.in_ci():
            report.outcome = "failed"
            report.longrepr = f"module skipped where CI is set: {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Print seed and skips after everything else, pytest's own summary line included."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not session.config.option.collectonly:
        seed = session.config.getoption("randomly_seed", None)
        reporter.write_line(f"this order again: pytest --randomly-seed={seed}")
        reporter.write_line(_skips_line(session.config.stash[_skips_key]))


def _skip_reason(longrepr: object) -> str:
    """Pytest tells a skip as (file, line, "Skipped: why")."""
    told = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return told.removeprefix("Skipped: ")


def _skips_line(skips: Counter[str]) -> str:
    reasons = "; ".join(f"{count} x {reason}" for reason, count in sorted(skips.items()))
    return f"skipped: {skips.total()}" + (f" ({reasons})" if reasons else "")
