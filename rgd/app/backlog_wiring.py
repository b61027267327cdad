"""Builds the poller of backlogs from the settings.

Law: only here settings become what the poller and its adapter take.
"""

import secrets

from rgd.adapters.stock.backlog_reader import BacklogReaderSettings, StockBacklogReader
from rgd.adapters.stock.client import StockClient
from rgd.app.access import stock_settings
from rgd.app.backlog_evicting import EvictionCarrier
from rgd.app.backlog_polling import BacklogPoller, BacklogPollSettings
from rgd.app.clock import Clock
from rgd.config.settings import Settings


def backlog_poller(settings: Settings, clock: Clock) -> BacklogPoller | None:
    """The poller; None if `backlog.poll` is false."""
    backlog = settings.backlog
    if not backlog.poll:
        return None
    reader = BacklogReaderSettings(
        cluster=settings.cluster,
        address=backlog.broker_address,
        broker=settings.broker.name,
        is_precise=backlog.preciseTimeBasedBacklogQuotaCheck,
    )
    return BacklogPoller(
        StockBacklogReader(StockClient(stock_settings(settings.exchange)), reader, clock.unix_ms),
        BacklogPollSettings(backlog.poll_ms / 1000, backlog.poll_topics_max),
        EvictionCarrier(is_enforced=backlog.enforce),
        secrets.SystemRandom(),
        clock.now,
    )
