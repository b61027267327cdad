"""A daemon as `rgd serve` builds it: backlogs with their settings, metrics, durations of checks and rounds; stock neighbours.

The parts are tested where they are (test_backlog_polling.py, test_stock_neighbours.py); a live Pulsar in
tests/integration/stock.
"""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.metrics.exposition import Exposition
from rgd.config.load import load_settings
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.bounds import BOUNDS
from rgd.core.broker.effects import SendStockReport
from rgd.core.broker.events import PoliciesChanged, Started, Woken
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import BacklogAction, BacklogQuota, Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair
from tests.support.whole_daemon import RgdDaemon, build
from tests.unit.core.backlog.topics import report, sub

SIZE = "pulsar_storage_backlog_size"
AGE = "pulsar_storage_backlog_age_seconds"
DURATION = "pulsar_storage_backlog_quota_check_duration_seconds_count"


def built(folder: Path, section: str = "", **values: Any) -> tuple[RgdDaemon, Exposition]:
    """A daemon with these settings of a section; nothing is opened."""
    overrides: dict[str, Any] = {
        "cluster": "c9",
        "exchange.url": "pulsar://127.0.0.1:6650",
        "log.dir": folder,
    }
    overrides |= {f"{section}.{name}": value for name, value in values.items()}
    settings = load_settings(None, {}, overrides)
    return build(settings, settings.exchange.url)


async def shown(exposition: Exposition, begin: str) -> list[str]:
    body, _ = await exposition.render("")
    return [line for line in body.decode().splitlines() if line.startswith(begin)]


def test_pulsars_keys_reach_the_core(tmp_path: Path) -> None:
    daemon, _ = built(
        tmp_path,
        "backlog",
        backlogQuotaCheckEnabled=False,
        backlogQuotaCheckIntervalInSeconds=7,
        preciseTimeBasedBacklogQuotaCheck=True,
        backlogQuotaDefaultLimitBytes=11,
        backlogQuotaDefaultLimitSecond=12,
        backlogQuotaDefaultRetentionPolicy="producer_exception",
        stale_after_s=13,
        hold_max_s=1.5,
    )
    assert daemon.core.settings.backlog == BacklogSettings(
        is_checked=False,
        interval_ns=7 * NS_PER_S,
        is_precise=True,
        default=BacklogQuota(11, 12, BacklogAction.REFUSE),
        stale_ns=13 * NS_PER_S,
        hold_max_ns=3 * NS_PER_S // 2,
    )


@pytest.mark.parametrize("by_topic", [True, False])
async def test_a_check_is_observed_once_and_topics_are_shown_as_configured(
    tmp_path: Path, by_topic: bool
) -> None:
    daemon, exposition = built(tmp_path, "backlog", exposeTopicLevelMetricsInPrometheus=by_topic)
    daemon._handle(Started(daemon.now()))
    daemon.backlogs.report((report(sub("a", (1, 0), 60)),))
    assert await shown(exposition, DURATION + "{") == [f'{DURATION}{{cluster="c9"}} 0.0']
    checked = daemon.core.backlogs.next_check
    daemon.core.backlogs.ask()
    while daemon.core.backlogs.checks < checked:
        daemon._handle(Woken(daemon.now()))
    assert await shown(exposition, DURATION + "{") == [f'{DURATION}{{cluster="c9"}} 1.0']
    place = 'cluster="c9",namespace="acme/orders"'
    (size,) = await shown(exposition, SIZE + "{")
    assert size.startswith(f"{SIZE}{{{place}") is True
    assert ("topic=" in size) is by_topic
    assert len(await shown(exposition, AGE + "{")) == by_topic


def test_the_end_of_a_round_is_observed_once_with_all_its_wakes(tmp_path: Path) -> None:
    daemon, _ = built(tmp_path)
    ends: list[float] = []
    daemon.parts = replace(daemon.parts, observe_round=ends.append)
    daemon.core.rounds._bounds = replace(BOUNDS.rounds, piece_rows=1)
    at = daemon.now()
    groups = {name: Group(name, Limit(Rates(MILLI))) for name in ("gold", "trial")}
    for event in (PoliciesChanged(at, PolicySnapshot(groups)), Started(at)):
        daemon._handle(event)
    for name in (*groups, *groups):
        daemon.core.limiter.acquire(Request(group=name), at)
    for begin, wakes in ((0, 100), (NS_PER_S, 2)):
        # A reading takes a millisecond, so each wake does; one of the first ones reports early.
        daemon.now = map(Nanos, count(at + begin, NS_PER_MS)).__next__
        for _ in range(wakes):
            daemon._wake()
    assert daemon.core.publisher.reports_sent == 2
    assert ends == [0.002]


async def test_with_both_dialects_the_stock_brokers_are_neighbours(tmp_path: Path) -> None:
    admin = "http://127.0.0.1:8080"
    settings = {"admin_url": admin, "dialects": "compact, pulsar", "pulsar_period_s": 5}
    daemon, exposition = built(tmp_path, "exchange", **settings)
    stock = daemon.stock
    assert stock is not None
    assert stock.parts.exchange is not daemon.parts.exchange
    assert stock.parts.period_s == 5
    assert daemon.core.settings.stock_period_ns == 5 * NS_PER_S
    daemon._carry_out(SendStockReport(StockReport("rgd://b1", (GroupUsage("gold", Pair(1, 1)),))))
    assert "rgd_stock_reports_sent_total 1.0" in await shown(exposition, "rgd_stock")
    assert "exchange with stock brokers: connecting" in daemon.health().degraded
    await daemon.close()
