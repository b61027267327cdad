"""Backlogs in a daemon as `rgd serve` builds it: settings, metrics, the check's duration.

The parts are tested where they are; the poller's in test_backlog_polling.py.
"""

from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.metrics.exposition import Exposition
from rgd.config.load import load_settings
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.broker.events import Started, Woken
from rgd.core.policies.model import BacklogAction, BacklogQuota
from rgd.core.units import NS_PER_S
from tests.support.whole_daemon import RgdDaemon, build
from tests.unit.core.backlog.topics import report, sub

SIZE = "pulsar_storage_backlog_size"
AGE = "pulsar_storage_backlog_age_seconds"
DURATION = "pulsar_storage_backlog_quota_check_duration_seconds_count"


def built(folder: Path, **backlog: Any) -> tuple[RgdDaemon, Exposition]:
    """A daemon with these settings of `backlog`; nothing is opened."""
    overrides: dict[str, Any] = {
        "cluster": "c9",
        "exchange.url": "pulsar://127.0.0.1:6650",
        "log.dir": folder,
    }
    overrides |= {f"backlog.{name}": value for name, value in backlog.items()}
    settings = load_settings(None, {}, overrides)
    return build(settings, settings.exchange.url)


async def shown(exposition: Exposition, name: str) -> list[str]:
    body, _ = await exposition.render("")
    return [line for line in body.decode().splitlines() if line.startswith(f"{name}{{")]


def test_the_defaults_are_pulsars(tmp_path: Path) -> None:
    daemon, _ = built(tmp_path)
    assert daemon.core.settings.backlog == BacklogSettings()
    assert daemon.core.settings.backlog.default == BacklogQuota(-1, -1, BacklogAction.HOLD)


def test_pulsars_keys_reach_the_core(tmp_path: Path) -> None:
    daemon, _ = built(
        tmp_path,
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
    daemon, exposition = built(tmp_path, exposeTopicLevelMetricsInPrometheus=by_topic)
    daemon._handle(Started(daemon.now()))
    daemon.backlogs.report((report(sub("a", (1, 0), 60)),))
    assert await shown(exposition, DURATION) == [f'{DURATION}{{cluster="c9"}} 0.0']
    checked = daemon.core.backlogs.next_check
    daemon.core.backlogs.ask()
    while daemon.core.backlogs.checks < checked:
        daemon._handle(Woken(daemon.now()))
    assert await shown(exposition, DURATION) == [f'{DURATION}{{cluster="c9"}} 1.0']
    place = 'cluster="c9",namespace="acme/orders"'
    (size,) = await shown(exposition, SIZE)
    assert size.startswith(f"{SIZE}{{{place}") is True
    assert ("topic=" in size) is by_topic
    assert len(await shown(exposition, AGE)) == by_topic
