"""Which source of policies there is, as the settings say, and the places that it needs.

Law: only here are a source's parts put together; what it does is its own module's business.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import structlog

from rgd.adapters.exchange.pulsar_admin import ensure_namespace
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.stock.client import StockClient, StockSettings
from rgd.adapters.stock.reader import StockAdmin
from rgd.adapters.stock.store import StockFile
from rgd.adapters.usagelog.files import log_folder
from rgd.app.policies.file import FilePolicies, seed_of
from rgd.app.policies.source import Policies
from rgd.app.policies.stock import NamesAsked, Origins, PollSettings, PulsarAdminPolicies
from rgd.app.policies.table import TablePolicies
from rgd.config.settings import PoliciesSource, Settings
from rgd.core.policies.names import namespace_of_topic
from rgd.core.units import NS_PER_MS
from rgd.ports.exchange import ExchangeDown

#: What was last read of a stock Pulsar, beside the usage log.
STOCK_POLICIES_FILE: Final = "pulsar-policies.json"

#: A change is in force everywhere within two polls, if Pulsar answers in time.
PATIENCE_POLLS: Final = 3

_log = structlog.get_logger("rgd.policies")


def policies_of(settings: Settings, url: str, names_asked: NamesAsked) -> Policies:
    """The source that the settings name."""
    file = settings.policies.file
    if settings.policies.source is PoliciesSource.PULSAR_ADMIN:
        return _pulsar_admin(settings, names_asked)
    if settings.policies.source is PoliciesSource.FILE:
        assert file is not None, "rgd.config.relations checks it"
        return FilePolicies(file)
    store = PulsarPolicyStore(url, settings.policies.topic)
    prepare = _prepare(settings, settings.policies.topic)
    return TablePolicies(store, settings.broker.name, seed_of(file), prepare=prepare)


def _pulsar_admin(settings: Settings, names_asked: NamesAsked) -> PulsarAdminPolicies:
    exchange, policies = settings.exchange, settings.policies
    assert exchange.admin_url is not None, "rgd.config.relations checks it"
    asked = StockSettings(
        exchange.admin_url, token_file=exchange.admin_token_file, ca_file=exchange.admin_ca_file
    )
    folder = log_folder(settings.log.dir, settings.broker.name)
    origins = Origins(
        stock=StockAdmin(StockClient(asked), settings.cluster),
        store=StockFile(folder / STOCK_POLICIES_FILE, asked.url),
        stand_in=seed_of(policies.file),
        names_asked=names_asked,
    )
    timing = PollSettings(policies.poll_ms / 1000, policies.topic_calls_max)
    return PulsarAdminPolicies(origins, timing, secrets.SystemRandom())


def patience_ns(settings: Settings) -> int:
    """How long daemons that follow the same Pulsar may differ: each looks when it looks."""
    if settings.policies.source is not PoliciesSource.PULSAR_ADMIN:
        return 0
    return PATIENCE_POLLS * settings.policies.poll_ms * NS_PER_MS


def _prepare(settings: Settings, topic: str) -> Callable[[], Awaitable[None]]:
    """Make the namespace of a topic, where we may."""
    exchange = settings.exchange

    async def prepare() -> None:
        if exchange.admin_url is not None:
            token = None
            if exchange.admin_token_file is not None:
                token = await asyncio.to_thread(_token_of, exchange.admin_token_file)
            await ensure_namespace(exchange.admin_url, namespace_of_topic(topic), token)

    return prepare


def prepare_exchange(settings: Settings) -> Callable[[], Awaitable[None]]:
    """Make the namespace of the usage topic, where we may; who may not joins if somebody else has."""
    prepare = _prepare(settings, settings.exchange.topic)
    told: set[str] = set()

    async def try_to_prepare() -> None:
        try:
            await prepare()
        except ExchangeDown as error:
            if str(error) not in told:
                _log.warning("did not prepare the exchange", reason=str(error))
            told.add(str(error))

    return try_to_prepare


def _token_of(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as exc:
        raise ExchangeDown(f"exchange.admin_token_file: {exc}") from exc
