"""Builds the configured source of policies, with the files and topics that it needs.

Law: only this module assembles a source; the source's own module has its behaviour.
"""

import secrets
from functools import partial
from typing import Final

from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.policies.kept import PoliciesFile
from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.reader import StockAdmin
from rgd.adapters.stock.store import StockFile
from rgd.adapters.usagelog.files import log_folder
from rgd.app.access import make_namespace, pulsar_settings
from rgd.app.policies.file import FilePolicies, GroupsFile, seed_of
from rgd.app.policies.source import Policies
from rgd.app.policies.stock import (
    NamesAsked,
    Origins,
    PulsarAdminPolicies,
    TopicsPolled,
    nothing_polled,
)
from rgd.app.policies.table import TablePolicies
from rgd.config.document import FILE_BYTES_MAX
from rgd.config.kept_file import KeptFile
from rgd.config.settings import PoliciesSource, Settings
from rgd.config.values import EMBEDDED
from rgd.core.policies.names import namespace_of_topic
from rgd.core.units import NS_PER_MS, NS_PER_S
from rgd.wire.policies import POLICY_MAX

#: The file with the last policies of a stock Pulsar, beside the usage log.
STOCK_POLICIES_FILE: Final = "pulsar-policies.json"
#: What was last known of the policies table, there too.
TABLE_POLICIES_FILE: Final = "table-policies.jsonl"
#: The groups file that was last accepted, there too.
FILE_POLICIES_FILE: Final = "file-policies.yaml"

#: A change of the table is read everywhere within milliseconds, unless somebody's connection to it is
#: dead; that is noticed, and the table opened again, within so long.
TABLE_PATIENCE_S: Final = 5

#: A change is in force everywhere within two polls, if Pulsar answers in time.
PATIENCE_POLLS: Final = 3


def policies_of(
    settings: Settings,
    url: str,
    names_asked: NamesAsked,
    topics_polled: TopicsPolled = nothing_polled,
    *,
    resumes: bool = False,
) -> Policies:
    """The source named in the settings."""
    if settings.policies.source is PoliciesSource.PULSAR_ADMIN:
        return _pulsar_admin(settings, names_asked, topics_polled, resumes=resumes)
    if settings.policies.source is PoliciesSource.FILE:
        file = _groups_file(settings, resumes=resumes)
        assert file is not None, "rgd.config.relations checks it"
        return FilePolicies(file)
    return _table(settings, url, resumes=resumes)


def _groups_file(settings: Settings, *, resumes: bool) -> GroupsFile | None:
    path = settings.policies.file
    if path is None:
        return None
    folder = log_folder(settings.log.dir, settings.broker.name)
    # Twice, because it has a head, too.
    kept = KeptFile(folder / FILE_POLICIES_FILE, str(path), 2 * FILE_BYTES_MAX)
    return GroupsFile(path, kept, resumes=resumes)


def _table(settings: Settings, url: str, *, resumes: bool) -> TablePolicies:
    topic = settings.policies.topic
    access = pulsar_settings(settings.exchange)
    folder = log_folder(settings.log.dir, settings.broker.name)
    return TablePolicies(
        PulsarPolicyStore(url, topic, settings=access, value_bytes_max=POLICY_MAX),
        settings.broker.name,
        seed_of(_groups_file(settings, resumes=resumes)),
        prepare=partial(make_namespace, settings.exchange, namespace_of_topic(topic), keeps=True),
        kept=PoliciesFile(folder / TABLE_POLICIES_FILE, table_identity(settings)),
        resumes=resumes,
    )


def table_identity(settings: Settings) -> str:
    """The identity of a table, for its stored file; the folder identifies an embedded exchange."""
    exchange = settings.exchange
    where = exchange.url
    if where == EMBEDDED:
        where = f"{EMBEDDED} {exchange.embedded_dir.expanduser().resolve()}"
    return f"{settings.cluster} {where} {settings.policies.topic}"


def _pulsar_admin(
    settings: Settings, names_asked: NamesAsked, topics_polled: TopicsPolled, *, resumes: bool
) -> PulsarAdminPolicies:
    policies = settings.policies
    client = StockClient(settings.exchange)
    folder = log_folder(settings.log.dir, settings.broker.name)
    origins = Origins(
        stock=StockAdmin(client, settings.cluster),
        store=StockFile(folder / STOCK_POLICIES_FILE, client.url),
        stand_in=seed_of(_groups_file(settings, resumes=resumes)),
        names_asked=names_asked,
        topics_polled=topics_polled,
    )
    return PulsarAdminPolicies(
        origins,
        secrets.SystemRandom(),
        poll_s=policies.poll_ms / 1000,
        topic_calls_max=policies.topic_calls_max,
    )


def patience_ns(settings: Settings) -> int:
    """How long daemons may differ in their policies without an alarm, because a change takes time."""
    by_source = {
        PoliciesSource.FILE: 0,
        PoliciesSource.PULSAR_ADMIN: PATIENCE_POLLS * settings.policies.poll_ms * NS_PER_MS,
        PoliciesSource.TABLE: TABLE_PATIENCE_S * NS_PER_S,
    }
    return by_source[settings.policies.source]
