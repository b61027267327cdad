"""How this daemon reaches Pulsar, as the settings say: the same for the exchange and the policies table.

Law: only here settings become what the adapters of the exchange take, so no connection goes without its
token or certificates. Files are named here and read by the adapters, each time they connect.
"""

import asyncio
import ssl
from pathlib import Path

from rgd.adapters.exchange.credentials import read_token
from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.adapters.exchange.pulsar_admin import NamespaceState, ensure_namespace, look_at
from rgd.adapters.exchange.pulsar_session import PulsarSettings
from rgd.adapters.exchange.seal import SealSettings
from rgd.adapters.stock.client import StockSettings
from rgd.app.clock import SystemClock
from rgd.config.settings import ExchangeSettings
from rgd.config.values import EMBEDDED, urls_of
from rgd.ports.exchange import ExchangeDown


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
        token_file=_admin_token_file(exchange),
        ca_file=_admin_ca(exchange),
        cert_file=exchange.tls_cert,
        key_file=exchange.tls_key,
    )


async def make_namespace(exchange: ExchangeSettings, namespace: str) -> None:
    """Make a namespace through the admin API; nothing if there is none.

    Raises:
        ExchangeDown: it cannot be made; the message says what to do.
    """
    if exchange.admin_url is None:
        return
    token, trust = await asyncio.to_thread(_admin_credentials, exchange)
    await ensure_namespace(urls_of(exchange.admin_url), namespace, token, trust)


async def look_at_namespace(exchange: ExchangeSettings, namespace: str) -> NamespaceState:
    """What `make_namespace` would change.

    Raises:
        ExchangeDown: the admin API cannot be asked; the message says what to do.
    """
    assert exchange.admin_url is not None, "whoever asks has one"
    token, trust = await asyncio.to_thread(_admin_credentials, exchange)
    return await look_at(urls_of(exchange.admin_url), namespace, token, trust)


def _admin_token_file(exchange: ExchangeSettings) -> Path | None:
    return exchange.admin_token_file or exchange.token_file


def _admin_ca(exchange: ExchangeSettings) -> Path | None:
    return exchange.admin_ca_file or exchange.tls_ca


def _admin_credentials(exchange: ExchangeSettings) -> tuple[str | None, ssl.SSLContext | None]:
    token_file, ca_file = _admin_token_file(exchange), _admin_ca(exchange)
    token = None
    if token_file is not None:
        setting = (
            "exchange.admin_token_file" if exchange.admin_token_file else "exchange.token_file"
        )
        token = read_token(token_file, setting)
    if ca_file is None and exchange.tls_cert is None:
        return token, None
    try:
        trust = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        if exchange.tls_cert is not None:
            trust.load_cert_chain(exchange.tls_cert, exchange.tls_key)
    except (OSError, ValueError) as exc:
        raise ExchangeDown(
            f"certificates for the admin API ({ca_file}, {exchange.tls_cert}): {exc}; check "
            "exchange.admin_ca_file, or exchange.tls_ca, tls_cert and tls_key"
        ) from exc
    return token, trust
