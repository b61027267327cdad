"""Builds the daemon from settings, and runs it: startup, serve, shutdown.

Only this module combines adapters, configuration and core. Each adapter gets a
dataclass of its own filled from the settings; lower layers read no settings.

`rgd.app.daemon` has the interaction of the parts.
"""

import asyncio
import gc
import secrets
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import uvloop

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.http.server import HttpServer
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.adapters.metrics.exposition import Exposition
from rgd.adapters.metrics.labels import topic_bounds
from rgd.adapters.usagelog.files import log_folder
from rgd.adapters.usagelog.off import NoLog
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog, Trimmed
from rgd.app.access import pulsar_settings
from rgd.app.backlog_telemetry import BacklogTelemetry
from rgd.app.backlog_wiring import backlog_poller
from rgd.app.backlogs import nobody_listens
from rgd.app.clock import SystemClock
from rgd.app.credentials import Credentials, tokens_of
from rgd.app.daemon import Halted, Parts, RgdDaemon
from rgd.app.interceptors import load_interceptors
from rgd.app.known_peers import KnownPeers
from rgd.app.live import Live
from rgd.app.log_wiring import log_keeper
from rgd.app.logs import configure_logs
from rgd.app.open_files import connections_room, raise_open_files
from rgd.app.policies.choose import patience_ns, policies_of, prepare_exchange
from rgd.app.policies.stock import nothing_polled
from rgd.app.recent_events import RecentEvents
from rgd.app.shard_wiring import shard_exchange
from rgd.app.stock_wiring import stock_parts
from rgd.app.telemetry import BUILD, Telemetry
from rgd.config.credential_files import check_credential_files
from rgd.config.faults import Faults
from rgd.config.settings import Settings
from rgd.config.values import EMBEDDED, split_address
from rgd.core.broker.broker import Broker
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.units import NS_PER_MS, NS_PER_S
from rgd.errors import RgdError
from rgd.version import __version__

#: Bits of an incarnation: it travels as a signed 64 bit number.
INCARNATION_BITS: Final = 62

#: How often it is looked whether the daemon is ready, until it is.
READY_LOOK_S: Final = 0.05


_log = structlog.get_logger("rgd")


#: How long a thread may keep the interpreter while requests wait (Python's default is 5 ms).
SWITCH_INTERVAL_S: Final = 0.0005

#: A collection of the oldest generation looks at every object there is, and 200,000 resolved names
#: keep requests waiting for 150 ms. Nearly all that lives long here is without cycles, so that one is
#: left to once in some hundred million new objects. The younger ones look at some 15,000 objects at
#: most (2 ms): with 100,000, ten thousand groups asked for the first time held requests up for 30 ms.
GC_THRESHOLDS: Final = (5_000, 2, 10_000)


def serve(settings: Settings, *, insecure: bool = False, say: Callable[[str], None]) -> None:
    """Run a daemon until SIGTERM or SIGINT.

    Args:
        settings: every setting, checked.
        insecure: listen beyond loopback without tokens.
        say: called with one line with broker, address and exchange, once it listens.

    Raises:
        ConfigError: a configured value cannot be used.
        Unavailable: a port is taken, or the embedded broker has no build here.
        Halted: another daemon uses this broker's name, or this one had too many errors.
    """
    events = RecentEvents()
    configure_logs(recent=events)
    check_credential_files(settings, Faults("settings"))
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        uvloop.run(_serve(settings, events, insecure=insecure, say=say))
    except BaseExceptionGroup as group:
        # What somebody can do something about is one line, also where it came from among several tasks.
        raise _foreseen(group) from group


async def _serve(
    settings: Settings, events: RecentEvents, *, insecure: bool, say: Callable[[str], None]
) -> None:
    until = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, until.set)
    async with AsyncExitStack() as stack:
        embedded = _embedded(settings)
        url = settings.exchange.url
        if embedded is not None:
            stack.push_async_callback(embedded.stop)
            url = await embedded.ensure()
        daemon, exposition = build(settings, url)
        stack.push_async_callback(daemon.close)
        live = Live(daemon, events)
        server = HttpServer(
            daemon,
            http_settings(settings, insecure=insecure),
            metrics=exposition.render,
            log_door=daemon.parts.log_keeper or NoLog(),
            live_door=live,
            observe=exposition.observe_answer,
        )
        credentials = Credentials(server, settings.http)
        exposition.also(server.samples)
        exposition.also(credentials.samples)
        await server.open()
        stack.push_async_callback(server.close)
        up = f"rgd starting broker={daemon.broker} listening={_address(settings, server)} exchange={url}"
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(_drain(until, daemon, server), name="drain"),
                    tasks.create_task(_tell_ready(daemon), name="ready"),
                ]
                if embedded is not None:
                    watch = daemon.errors.keep("embedded", embedded.supervise)
                    beside.append(tasks.create_task(watch, name="embedded"))
                works = {"credentials": credentials.follow, "live": live.follow}
                beside += [
                    tasks.create_task(daemon.errors.keep(what, follow), name=what)
                    for what, follow in works.items()
                ]
                _log.info("starting", version=__version__, build=BUILD, broker=daemon.broker)
                await daemon.run(until, on_up=lambda: say(up))
                for task in beside:
                    task.cancel()
        finally:
            # In every case without blocking: a stuck disk must not delay the exit.
            await _close_within(stack, settings.shutdown_timeout_ms / 1000)
            ended = settings.broker.name
            _log.info("stopped", version=__version__, build=BUILD, broker=ended)
    if daemon.halted is not None:
        raise Halted(daemon.halted)


def _foreseen(group: BaseExceptionGroup) -> BaseException:
    """The first error of a group, if every one of it is foreseen; otherwise the group."""
    if group.split((RgdError, OSError))[1] is not None:
        return group
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _tell_ready(daemon: RgdDaemon) -> None:
    while not daemon.health().ready:  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(READY_LOOK_S)
    _log.info("ready", broker=daemon.broker)


async def _drain(until: asyncio.Event, daemon: RgdDaemon, server: HttpServer) -> None:
    await until.wait()
    daemon.drain()
    server.drain()


def _address(settings: Settings, server: HttpServer) -> str:
    scheme = "https" if settings.http.tls_cert else "http"
    host = settings.http.address[0]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.port}"


def _embedded(settings: Settings) -> EmbeddedBroker | None:
    if settings.exchange.url != EMBEDDED:
        return None
    return EmbeddedBroker(settings.exchange.embedded_dir.expanduser())


async def _close_within(stack: AsyncExitStack, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stack.aclose()
    except TimeoutError:
        _log.warning("gave up waiting for an orderly end", seconds=seconds)


def build(settings: Settings, url: str) -> tuple[RgdDaemon, Exposition]:
    """Assemble a daemon; nothing is opened yet."""
    clock = SystemClock()
    folder = log_folder(settings.log.dir, settings.broker.name)
    known = KnownPeers(folder / "peers.json")
    sender = Sender(settings.broker.name, secrets.randbits(INCARNATION_BITS) or 1)
    core = Broker(core_settings(settings, sender, known.load()), clock.now())
    timings: list[Exposition] = []

    def observe_round(seconds: float) -> None:
        timings[0].observe_round(seconds)

    def observe_backlog_check(seconds: float) -> None:
        timings[0].observe_backlog_check(seconds)

    usage_log = _usage_log(settings, folder, clock) if settings.log.enabled else None
    prepare = prepare_exchange(settings, settings.exchange.topic)
    keeper = None if usage_log is None else log_keeper(settings, folder, usage_log, clock)
    poller = backlog_poller(settings, clock)
    parts = Parts(
        clock=clock,
        exchange=PulsarExchange(
            url,
            settings.exchange.topic,
            settings=pulsar_settings(settings.exchange),
            prepare=prepare,
        ),
        shard_exchange=partial(shard_exchange, settings, url, prepare),
        policies=policies_of(
            settings,
            url,
            core.limiter.names_asked,
            nothing_polled if poller is None else poller.topics,
        ),
        usage_log=usage_log or NoLog(),
        remember=known.store,
        observe_round=observe_round,
        observe_backlog_check=observe_backlog_check,
        prepare=prepare,
        log_keeper=keeper,
        poller=poller,
        stock=stock_parts(settings, url),
        evict=nobody_listens if poller is None else poller.carrier.add,
    )
    daemon = RgdDaemon(core, parts, settings.cluster)
    if usage_log is not None:
        usage_log.on_fault = daemon.recorder.fault
    timings.append(_exposition(settings, daemon))
    return daemon, timings[0]


def _exposition(settings: Settings, daemon: RgdDaemon) -> Exposition:
    """The page of all figures."""
    backlog = settings.backlog
    bounds = topic_bounds(backlog.metrics_topics_max, backlog.metrics_subscriptions_max)
    by_topic = backlog.exposeTopicLevelMetricsInPrometheus
    exposition = Exposition(
        Telemetry(daemon, by_topic=by_topic),
        settings.cluster,
        bounds,
        split_partitions=backlog.splitTopicAndPartitionIndexLabel,
    )
    backlogs = BacklogTelemetry(daemon, by_topic=by_topic)
    for part in (backlogs, daemon.parts.log_keeper, daemon.parts.poller, daemon.stock):
        if part is not None:
            exposition.also(partial(daemon.errors.figures, part.samples))
    return exposition


def core_settings(
    settings: Settings, sender: Sender, stored_peers: frozenset[str]
) -> BrokerSettings:
    """The core's settings, in the core's units."""
    exchange, shares = settings.exchange, settings.shares
    return BrokerSettings(
        sender=sender,
        weight=settings.broker.weight_milli,
        round_ns=exchange.round_ms * NS_PER_MS,
        min_interval_ns=exchange.min_interval_ms * NS_PER_MS,
        damping_max_ns=exchange.settle_max_ms * NS_PER_MS,
        tolerance_ppm=round(exchange.tolerance * 1_000_000),
        full_every_rounds=exchange.full_every_rounds,
        expiry_rounds=exchange.expiry_rounds,
        isolation_hold_rounds=exchange.isolation_hold_rounds,
        on_isolation=exchange.on_isolation,
        expected_brokers=exchange.expected_brokers,
        shards=exchange.shards,
        stored_peers=stored_peers - {sender.broker},
        policies_patience_ns=patience_ns(settings),
        on_unknown=settings.policies.unknown,
        policy=shares.policy,
        topic_split=shares.topic_split,
        floor_ppm=shares.floor_ppm,
        burst_ns=shares.burst_ms * NS_PER_MS,
        request_max_ms=round(shares.request_max_s * 1000),
        yield_rounds=exchange.yield_rounds,
        peers_max=exchange.peers_max,
        backlog=settings.backlog.to_core(),
        stock_period_ns=exchange.pulsar_period_s * NS_PER_S if exchange.has_stock_brokers else 0,
    )


def http_settings(settings: Settings, *, insecure: bool) -> HttpSettings:
    """The door's settings; where the process may open few files, with fewer connections."""
    http = settings.http
    room = connections_room(raise_open_files(), settings.exchange.shards)
    if room < http.connections_max:
        _log.warning("few open files: fewer connections than http.connections_max", most=room)
    tokens = Tokens() if http.tokens_file is None else tokens_of(http.tokens_file)
    host, port = http.address
    return HttpSettings(
        host=host,
        port=port,
        probe_address=None if http.probe_listen is None else split_address(http.probe_listen),
        unix_socket=http.unix_socket,
        batch_max=http.batch_max,
        body_max_bytes=http.body_max_bytes,
        connections_max=min(http.connections_max, room),
        connections_per_address_max=http.connections_per_address_max,
        idle_timeout_s=http.idle_timeout_ms / 1000,
        request_timeout_s=http.request_timeout_ms / 1000,
        answer_timeout_s=http.answer_timeout_ms / 1000,
        unread_max_bytes=http.unread_max_bytes,
        bodies_max_bytes=http.bodies_max_bytes,
        ungoverned=http.ungoverned,
        tokens=tokens,
        tls_cert=http.tls_cert,
        tls_key=http.tls_key,
        tls_client_ca=http.tls_client_ca,
        shadow=http.shadow,
        insecure=insecure,
    )


def _usage_log(settings: Settings, folder: Path, clock: SystemClock) -> SegmentedLog:
    return SegmentedLog(
        folder,
        _log_settings(settings),
        broker=settings.broker.name,
        clock=clock.now,
        on_alarm=_tell_log_alarm,
        on_trimmed=_tell_log_trimmed,
    )


def _log_settings(settings: Settings) -> UsageLogSettings:
    return UsageLogSettings(
        segment_bytes=settings.log.segment_bytes,
        segment_age_s=settings.log.segment_age_s,
        local_bytes=settings.log.local_bytes,
        retention_s=settings.log.retention_s,
        retention_bytes=settings.log.retention_bytes or None,
        interceptors=settings.log.interceptors,
        own_interceptors=load_interceptors(settings.log.own_interceptors),
        fsync=settings.log.fsync,
        fsync_ms=settings.log.fsync_ms,
    )


def _tell_log_alarm(alarm: LogAlarm) -> None:
    if alarm.trouble is None:
        _log.info("usage log goes on", folder=str(alarm.folder), lost=alarm.lost)
    else:
        # A full disk stops logging, never limiting.
        _log.error("usage log stopped", folder=str(alarm.folder), reason=alarm.trouble)


def _tell_log_trimmed(trimmed: Trimmed) -> None:
    for removal in trimmed.removals:
        segment = removal.segment
        about = {
            "folder": str(trimmed.folder),
            "reason": removal.reason.value,
            "first_index": segment.first_index,
            "last_index": segment.last_index,
            "bytes": segment.size,
        }
        if removal.passed:
            _log.warning(
                "usage log segment deleted before it was read",
                unread_by=list(removal.passed),
                **about,
            )
        else:
            _log.info("usage log segment deleted", **about)
