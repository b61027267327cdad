"""How this daemon reaches Pulsar, as the settings say: the same for the exchange and the policies table.

Law: only here settings become what the adapters of the exchange take, so no connection goes without its
token or certificates. Files are named here and read by the adapters, each time they connect.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.adapters.exchange.pulsar_errors import namespace_commands
from rgd.adapters.exchange.pulsar_session import PulsarSettings
from rgd.adapters.exchange.seal import SealSettings
from rgd.adapters.stock.client import StockClient, StockSettings
from rgd.adapters.stock.namespaces import NamespaceState, ensure_namespace, look_at
from rgd.app.clock import SystemClock
from rgd.config.settings import ExchangeSettings
from rgd.config.values import EMBEDDED
from rgd.ports.exchange import ExchangeDown
from rgd.ports.stock import StockDown, StockError


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


def stock_settings(exchange: ExchangeSettings) -> StockSettings:
    """How to ask the admin API for its policies."""
    assert exchange.admin_url is not None, "rgd.config.relations checks it"
    return StockSettings(
        exchange.admin_url,
        token_file=exchange.admin_token_file or exchange.token_file,
        ca_file=exchange.admin_ca_file or exchange.tls_ca,
        cert_file=exchange.tls_cert,
        key_file=exchange.tls_key,
    )


async def make_namespace(exchange: ExchangeSettings, namespace: str) -> None:
    """Make a namespace through the admin API; nothing if there is none.

    Raises:
        ExchangeDown: it cannot be made; the message says what to do.
    """
    if exchange.admin_url is not None:
        async with _admin(exchange, namespace) as client:
            await ensure_namespace(client, namespace)


async def look_at_namespace(exchange: ExchangeSettings, namespace: str) -> NamespaceState:
    """What `make_namespace` would change.

    Raises:
        ExchangeDown: the admin API cannot be asked; the message says what to do.
    """
    async with _admin(exchange, namespace) as client:
        return await look_at(client, namespace)


@asynccontextmanager
async def _admin(exchange: ExchangeSettings, namespace: str) -> AsyncIterator[StockClient]:
    """The admin API; what it answers instead of working is ExchangeDown, with a remedy."""
    client, at = StockClient(stock_settings(exchange)), f"the admin API at {exchange.admin_url}"
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
