"""How this daemon reaches Pulsar, as the settings say: for exchange, shards, policies, stock brokers and backlogs.

Law: only here settings become what the adapters of the exchange take, so no connection goes without its
token or certificates. Files are named here and read by the adapters, each time they connect.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import structlog

from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.adapters.exchange.inbox import WAITING_BYTES_MAX
from rgd.adapters.exchange.pulsar import Prepare, PulsarExchange, PulsarSettings
from rgd.adapters.exchange.pulsar_errors import namespace_commands
from rgd.adapters.exchange.seal import SealSettings
from rgd.adapters.stock.backlog_reader import StockBacklogReader
from rgd.adapters.stock.broker_list import StockBrokerList
from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.namespaces import NamespaceState, ensure_namespace, look_at
from rgd.app.backlog_evicting import EvictionCarrier
from rgd.app.backlog_polling import BacklogPoller
from rgd.app.clock import Clock, SystemClock
from rgd.app.stock_neighbours import StockParts
from rgd.config.settings import ExchangeSettings, Settings
from rgd.config.values import EMBEDDED
from rgd.core.exchange.dialects import STOCK_TOPIC
from rgd.core.exchange.shards import Shard
from rgd.core.policies.names import namespace_of_topic
from rgd.ports.exchange import ExchangeDown
from rgd.ports.stock import StockDown, StockError

#: Least room for waiting messages of one shard, in bytes: some of the largest ones.
SHARD_BYTES_MIN: Final = 4 << 20

_log = structlog.get_logger("rgd.policies")


def pulsar_settings(exchange: ExchangeSettings) -> PulsarSettings:
    """How to connect to the broker that carries exchange and policies table."""
    seal = None
    if exchange.url == EMBEDDED:
        folder = EmbeddedFolder(exchange.embedded_dir.expanduser())
        seal = SealSettings(folder.secret, SystemClock().now)
    return PulsarSettings(
        token_file=exchange.token_file,
        tls_trust_certs=exchange.tls_ca,
        tls_cert=exchange.tls_cert,
        tls_key=exchange.tls_key,
        seal=seal,
        listener_name=exchange.listener_name,
        open_timeout_s=exchange.open_timeout_s,
        send_timeout_ms=exchange.send_timeout_ms,
    )


async def make_namespace(exchange: ExchangeSettings, namespace: str, *, keeps: bool) -> None:
    """Make a namespace through the admin API; nothing if there is none, or the exchange is not that Pulsar's.

    Raises:
        ExchangeDown: it cannot be made; the message says what to do.
    """
    if exchange.admin_url is not None and exchange.url != EMBEDDED:
        async with _admin(exchange, namespace) as client:
            await ensure_namespace(client, namespace, keeps=keeps)


async def look_at_namespace(
    exchange: ExchangeSettings, namespace: str, *, keeps: bool
) -> NamespaceState:
    """What `make_namespace` would change.

    Raises:
        ExchangeDown: the admin API cannot be asked; the message says what to do.
    """
    async with _admin(exchange, namespace) as client:
        return await look_at(client, namespace, keeps=keeps)


def prepare_exchange(settings: Settings, topic: str) -> Prepare:
    """Create the namespace of a usage topic, if permitted; otherwise it must exist already."""
    logged: set[str] = set()

    async def try_to_prepare() -> None:
        try:
            await make_namespace(settings.exchange, namespace_of_topic(topic), keeps=False)
        except ExchangeDown as error:
            if str(error) not in logged:
                _log.warning("did not prepare the exchange", topic=topic, reason=str(error))
            logged.add(str(error))

    return try_to_prepare


def topic_of(topic: str, shard: Shard) -> str:
    """The name of a shard's topic."""
    return f"{topic}-shard-{shard.number}-of-{shard.of}"


def shard_exchange(
    settings: Settings, url: str, prepare: Prepare | None, shard: Shard
) -> PulsarExchange:
    """The exchange of a shard; all shards share the room for waiting messages."""
    return PulsarExchange(
        url,
        topic_of(settings.exchange.topic, shard),
        settings=pulsar_settings(settings.exchange),
        queue_bytes_max=max(SHARD_BYTES_MIN, WAITING_BYTES_MAX // shard.of),
        prepare=prepare,
        is_prepared=True,
    )


def stock_parts(settings: Settings, url: str) -> StockParts | None:
    """The parts of the exchange with stock brokers; None if `exchange.dialects` lacks `pulsar`."""
    exchange = settings.exchange
    if not exchange.has_stock_brokers:
        return None
    access = replace(pulsar_settings(exchange), is_compressed=True)
    prepare = prepare_exchange(settings, STOCK_TOPIC)
    return StockParts(
        # A client of its own: Pulsar pauses a whole connection where it throttles a producer.
        PulsarExchange(url, STOCK_TOPIC, settings=access, prepare=prepare),
        StockBrokerList(StockClient(exchange), settings.cluster, exchange.pulsar_period_s),
        exchange.pulsar_period_s,
    )


def backlog_poller(settings: Settings, clock: Clock) -> BacklogPoller | None:
    """The poller of backlogs; None if `backlog.poll` is false."""
    backlog = settings.backlog
    if not backlog.poll:
        return None
    reader = StockBacklogReader(
        StockClient(settings.exchange),
        backlog,
        clock.unix_ms,
        cluster=settings.cluster,
        broker=settings.broker.name,
    )
    return BacklogPoller(
        reader,
        EvictionCarrier(is_enforced=backlog.enforce),
        secrets.SystemRandom(),
        clock.now,
        poll_s=backlog.poll_ms / 1000,
        topics_max=backlog.poll_topics_max,
    )


@asynccontextmanager
async def _admin(exchange: ExchangeSettings, namespace: str) -> AsyncIterator[StockClient]:
    """The admin API; what it answers instead of working is ExchangeDown, with a remedy."""
    client, at = StockClient(exchange), f"the admin API at {exchange.admin_url}"
    try:
        yield client
    except StockDown as exc:
        raise ExchangeDown(
            f"{at} cannot be reached: {exc}; check exchange.admin_url, or leave it out if the namespace exists"
        ) from exc
    except StockError as exc:
        tenant = namespace.partition("/")[0]
        raise ExchangeDown(
            f"{at}: {exc}; set exchange.admin_token_file to a token of a role that administers the tenant "
            f"(pulsar-admin tenants update {tenant} --admin-roles ROLE), or leave out exchange.admin_url and "
            f"{namespace_commands(namespace)}"
        ) from exc
    finally:
        await client.close()
