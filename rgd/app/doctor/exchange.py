"""The exchange: whether it answers and lets this daemon in, who is there, and whose clock is off.

How: it opens the session that a daemon opens, listens for a round, and sends nothing.
"""

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import Final

from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.adapters.exchange.embedded_process import LOOPBACK, accepts, find_binary
from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_errors import TopicMissing
from rgd.adapters.stock import answers
from rgd.adapters.stock.client import StockClient
from rgd.app.access import look_at_namespace, pulsar_settings
from rgd.app.clock import SystemClock
from rgd.app.doctor.findings import Report
from rgd.app.doctor.machine import existing, try_to_write
from rgd.config.settings import PoliciesSource, Settings
from rgd.config.values import EMBEDDED
from rgd.core.policies.names import namespace_of_topic
from rgd.errors import Unavailable
from rgd.ports.exchange import Received
from rgd.ports.stock import StockError
from rgd.wire.dialect import CompactDialect
from rgd.wire.errors import WireError

#: Longest time of each step of connecting, in whole seconds.
OPEN_S: Final = 2
#: Longest time of listening; members send once a round, which may be a minute.
LISTEN_S: Final = 1.5
#: A clock that is off by more is a fault: tokens, certificates, the usage log and stock brokers go by it.
CLOCK_S: Final = 5.0

_SET_CLOCKS: Final = "set the clocks by NTP (chrony, systemd-timesyncd)"


async def exchange(report: Report, settings: Settings) -> None:
    """Whether it is there, whether its topics take and give messages, and what members say of themselves."""
    url = settings.exchange.url
    if url == EMBEDDED:
        folder = settings.exchange.embedded_dir.expanduser()
        record = EmbeddedFolder(folder).read_record()
        if record is None or not record.is_ready or not await accepts(record.port):
            report.ok(f"{find_binary().name} runs from {folder} as soon as a daemon starts")
            await asyncio.to_thread(try_to_write, existing(folder), "exchange.embedded_dir")
            return
        url = f"pulsar://{LOOPBACK}:{record.port}"
    topics = [settings.exchange.topic]
    if settings.policies.source is PoliciesSource.TABLE:
        topics.append(settings.policies.topic)
    access = replace(pulsar_settings(settings.exchange), open_timeout_s=OPEN_S)
    members = [PulsarExchange(url, topic, settings=access) for topic in topics]
    try:
        await asyncio.gather(*(member.open() for member in members))
        report.ok(f"{url}: {' and '.join(topics)} can be written and read")
        ahead = await _heard(members[0], settings.exchange.round_ms)
        _judge(report, settings.broker.name, ahead)
    except TopicMissing as error:
        if settings.exchange.admin_url is None:
            raise
        report.warning(f"a daemon makes the namespace at its start, if its role may: {error}")
    finally:
        await asyncio.gather(*(member.close() for member in members))


async def _heard(member: PulsarExchange, round_ms: int) -> dict[str, dict[int, float]]:
    """Of each broker the incarnations, and how far their clocks are ahead of ours, in seconds."""
    ahead: dict[str, dict[int, float]] = defaultdict(dict)
    dialect = CompactDialect()

    def take(received: Received) -> None:
        sender = dialect.decode(received.payload).sender
        one = (received.published_ms - SystemClock().unix_ms()) / 1000
        # A report arrives later than it was published, so the least late one shows the clocks best.
        ahead[sender.broker][sender.incarnation] = max(
            one, ahead[sender.broker].get(sender.incarnation, one)
        )

    try:
        async with asyncio.timeout(min(LISTEN_S, 1.2 * round_ms / 1000)):
            while True:
                for received in await member.receive_dated():
                    try:
                        take(received)
                    except WireError:
                        continue  # the daemon counts and drops it too
    except TimeoutError:
        return ahead


def _judge(report: Report, name: str, ahead: dict[str, dict[int, float]]) -> None:
    count, expected = len(ahead.get(name, ())), int(report.is_running)
    if count > expected:
        report.fault(
            f"{count} daemons report as broker {name}, expected {expected}: "
            "give each daemon its own broker.name"
        )
    peers = {broker: max(clocks.values()) for broker, clocks in ahead.items() if broker != name}
    off = [f"{broker} {s:+.0f}" for broker, s in sorted(peers.items()) if abs(s) > CLOCK_S]
    if off:
        report.fault(
            f"clocks differ from this machine's by (seconds) {', '.join(off)}; {_SET_CLOCKS}"
        )
    elif peers:
        report.ok(f"other brokers report, and clocks agree: {', '.join(sorted(peers))}")


async def admin(report: Report, settings: Settings) -> None:
    """Whether Pulsar's admin API lets this daemon in, how the namespaces are set, and Pulsar's clock."""
    if settings.exchange.admin_url is None:
        report.ok("no exchange.admin_url: retention of the policies topic is not checked")
        return
    names = {namespace_of_topic(settings.exchange.topic): False}
    if settings.policies.source is PoliciesSource.TABLE:
        names[namespace_of_topic(settings.policies.topic)] = True
    # An embedded broker has both topics itself; then only access and clock are looked at.
    is_exchange = settings.exchange.url != EMBEDDED
    for namespace, keeps in sorted(names.items()):
        state = await look_at_namespace(settings.exchange, namespace, keeps=keeps)
        if is_exchange and state.lacking:
            report.warning(
                f"{namespace} lacks {', '.join(state.lacking)}; a daemon sets it at its start, if its role may"
            )
        elif is_exchange:
            report.ok(f"{namespace} is there" + ", retention unlimited, compacted" * keeps)
        off_s = 0 if state.server_ms is None else (SystemClock().unix_ms() - state.server_ms) / 1000
        if abs(off_s) > CLOCK_S:
            report.fault(f"this machine's clock is {off_s:+.0f} s from Pulsar's; {_SET_CLOCKS}")
    if settings.policies.source is PoliciesSource.PULSAR_ADMIN:
        await _followed(report, settings)


async def _followed(report: Report, settings: Settings) -> None:
    """Whether Pulsar's policies can be read."""
    client = StockClient(settings.exchange)
    try:
        await client.prepare()
        for names_of in ("resourcegroups", "tenants"):
            await client.get(names_of, answers.NAMES)
    except StockError as error:
        raise Unavailable(
            f"policies.source: {error}; check exchange.admin_url, and that exchange.admin_token_file is of a superuser"
        ) from error
    finally:
        await client.close()
    report.ok("Pulsar's groups and tenants can be read")
