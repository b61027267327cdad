"""Builds the neighbourhood of stock brokers from the settings.

Law: only here settings become what it and its adapters take.
"""

from dataclasses import replace
from functools import partial

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.stock.broker_list import StockBrokerList
from rgd.adapters.stock.client import StockClient
from rgd.app.access import make_namespace, pulsar_settings, stock_settings
from rgd.app.stock_neighbours import StockParts
from rgd.config.settings import Settings
from rgd.core.exchange.dialects import STOCK_TOPIC
from rgd.core.policies.names import namespace_of_topic


def stock_parts(settings: Settings, url: str) -> StockParts | None:
    """The parts; None if `exchange.dialects` lacks `pulsar`."""
    exchange = settings.exchange
    if not exchange.has_stock_brokers:
        return None
    access = replace(pulsar_settings(exchange), is_compressed=True)
    prepare = partial(make_namespace, exchange, namespace_of_topic(STOCK_TOPIC))
    return StockParts(
        # A client of its own: Pulsar pauses a whole connection where it throttles a producer.
        PulsarExchange(url, STOCK_TOPIC, settings=access, prepare=prepare),
        StockBrokerList(StockClient(stock_settings(exchange)), settings.cluster),
        exchange.pulsar_period_s,
        prepare,
    )
