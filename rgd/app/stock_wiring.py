"""Builds the neighbourhood of stock brokers from the settings.

Law: only here settings become what it and its adapters take.
"""

from dataclasses import replace

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.stock.broker_list import StockBrokerList
from rgd.adapters.stock.client import StockClient
from rgd.app.access import pulsar_settings, stock_settings
from rgd.app.policies.choose import prepare_exchange
from rgd.app.stock_neighbours import StockParts
from rgd.config.settings import Settings
from rgd.core.exchange.dialects import STOCK_TOPIC


def stock_parts(settings: Settings, url: str) -> StockParts | None:
    """The parts; None if `exchange.dialects` lacks `pulsar`."""
    exchange = settings.exchange
    if not exchange.has_stock_brokers:
        return None
    access = replace(pulsar_settings(exchange), is_compressed=True)
    prepare = prepare_exchange(settings, STOCK_TOPIC)
    return StockParts(
        # A client of its own: Pulsar pauses a whole connection where it throttles a producer.
        PulsarExchange(url, STOCK_TOPIC, settings=access, prepare=prepare),
        StockBrokerList(StockClient(stock_settings(exchange)), settings.cluster),
        exchange.pulsar_period_s,
    )
