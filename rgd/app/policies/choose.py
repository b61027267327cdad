"""Which source of policies there is, as the settings say, and the places that it needs.

Law: only here are a source's parts put together; what it does is its own module's business.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from rgd.adapters.exchange.pulsar import PulsarPolicyStore
from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.reader import StockAdmin
from rgd.adapters.stock.store import StockFile
from rgd.adapters.usagelog.files import log_folder
from rgd.app.access import make_namespace, pulsar_settings, stock_settings
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
    access = pulsar_settings(settings.exchange)
    store = PulsarPolicyStore(url, settings.policies.topic, settings=access)
    prepare = _prepare(settings, settings.policies.topic)
    return TablePolicies(store, settings.broker.name, seed_of(file), prepare=prepare)


def _pulsar_admin(settings: Settings, names_asked: NamesAsked) -> PulsarAdminPolicies:
    policies = settings.policies
    asked = stock_settings(settings.exchange)
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

    async def prepare() -> None:
        await make_namespace(settings.exchange, namespace_of_topic(topic))

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
