"""Builds what agrees from settings.

Only this module combines adapters, configuration and core. Each adapter gets the section of the settings by which it is
configured, or a dataclass of its own filled from it; none reads where settings come from.

`rgd.app.daemon` has the interaction of the parts, `rgd.app.planes` runs them.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.metrics.exposition import Exposition
from rgd.adapters.metrics.labels import topic_bounds
from rgd.adapters.usagelog.files import log_folder
from rgd.adapters.usagelog.off import NoLog
from rgd.adapters.usagelog.retention import Removal
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from rgd.app.access import (
    backlog_poller,
    prepare_exchange,
    pulsar_settings,
    shard_exchange,
    stock_parts,
)
from rgd.app.backlog_telemetry import BacklogTelemetry
from rgd.app.backlogs import nobody_listens
from rgd.app.clock import SystemClock
from rgd.app.daemon import Agreeing, Parts
from rgd.app.interceptors import load_interceptors
from rgd.app.known_peers import KnownPeers
from rgd.app.log_wiring import log_keeper, log_limits
from rgd.app.policies.choose import patience_ns, policies_of
from rgd.app.policies.stock import nothing_polled
from rgd.app.telemetry import Telemetry
from rgd.config.settings import Settings
from rgd.config.values import parse_interceptors
from rgd.core.broker.broker import Broker
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.gate.looks import listed, names_asked
from rgd.core.gate.port import Gate
from rgd.core.shares.model import PPM, WEIGHT_ONE
from rgd.core.units import NS_PER_MS, NS_PER_S
from rgd.ports.usagelog import Interceptor

#: How often it is looked whether the daemon is ready, until it is.
READY_LOOK_S: Final = 0.05


_log = structlog.get_logger("rgd")

_Made = TypeVar("_Made", bound=Agreeing)


async def tell_ready(daemon: Agreeing) -> None:
    """Log once it is ready."""
    while not daemon.health().ready:  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(READY_LOOK_S)
    _log.info("ready", broker=daemon.broker)


def core_of(
    settings: Settings,
    gate: Gate | None,
    incarnation: int,
    former: Mapping[tuple[int, int], int] | None = None,
) -> Broker:
    """The core of a daemon.

    Args:
        settings: every setting.
        gate: answers requests; None: the core makes its own.
        incarnation: of this daemon.
        former: as `Broker`.
    """
    sender = Sender(settings.broker.name, incarnation)
    stored = _known_peers(settings).load()
    return Broker(core_settings(settings, sender, stored), SystemClock.now(), gate, former)


def assemble(
    settings: Settings, url: str, core: Broker, make: Callable[[Broker, Parts, str], _Made]
) -> tuple[_Made, Exposition]:
    """Assemble what `make` makes of a core, its parts and the cluster's name; nothing is opened yet."""
    clock = SystemClock()
    folder = log_folder(settings.log.dir, settings.broker.name)
    backlog = settings.backlog
    exposition = Exposition(
        cluster=settings.cluster,
        topic_bounds=topic_bounds(backlog.metrics_topics_max, backlog.metrics_subscriptions_max),
        split_partitions=backlog.splitTopicAndPartitionIndexLabel,
    )
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
            partial(listed, core.gate, names_asked),
            nothing_polled if poller is None else poller.topics,
            resumes=core.resumes,
        ),
        usage_log=usage_log or NoLog(),
        remember=_known_peers(settings).store,
        observe_round=exposition.observe_round,
        observe_backlog_check=exposition.observe_backlog_check,
        log_keeper=keeper,
        poller=poller,
        stock=stock_parts(settings, url),
        evict=nobody_listens if poller is None else poller.carrier.add,
    )
    daemon = make(core, parts, settings.cluster)
    if usage_log is not None:
        # The log has counted it.
        usage_log.on_fault = partial(daemon.errors.note, "record")
    by_topic = backlog.exposeTopicLevelMetricsInPrometheus
    exposition.also(Telemetry(daemon, by_topic=by_topic).samples)
    for part in (BacklogTelemetry(daemon, by_topic=by_topic), keeper, poller, daemon.stock):
        if part is not None:
            exposition.also(partial(daemon.errors.figures, part.samples))
    return daemon, exposition


def _known_peers(settings: Settings) -> KnownPeers:
    return KnownPeers(log_folder(settings.log.dir, settings.broker.name) / "peers.json")


def core_settings(
    settings: Settings, sender: Sender, stored_peers: frozenset[str]
) -> BrokerSettings:
    """The core's settings, in the core's units."""
    exchange, shares = settings.exchange, settings.shares
    return BrokerSettings(
        sender=sender,
        weight=round(settings.broker.weight * WEIGHT_ONE),
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
        floor_ppm=round(shares.floor_fraction * PPM),
        burst_ns=shares.burst_ms * NS_PER_MS,
        request_max_ms=round(shares.request_max_s * 1000),
        yield_rounds=exchange.yield_rounds,
        peers_max=exchange.peers_max,
        backlog=settings.backlog.to_core(),
        stock_period_ns=exchange.pulsar_period_s * NS_PER_S if exchange.has_stock_brokers else 0,
    )


def _usage_log(settings: Settings, folder: Path, clock: SystemClock) -> SegmentedLog:
    return SegmentedLog(
        folder,
        _log_settings(settings),
        broker=settings.broker.name,
        clock=clock.now,
        on_alarm=partial(_tell_log_alarm, folder),
        on_trimmed=partial(_tell_log_trimmed, folder),
    )


def _log_settings(settings: Settings) -> UsageLogSettings:
    names = parse_interceptors(settings.log.brokerEntryMetadataInterceptors)
    return UsageLogSettings(
        segment_bytes=settings.log.segment_bytes,
        segment_age_ms=round(settings.log.segment_age_s * 1000),
        limits=log_limits(settings.log),
        interceptors=frozenset(one for one in Interceptor if one in names),
        own_interceptors=load_interceptors([one for one in names if one not in {*Interceptor}]),
        fsync=settings.log.fsync,
        fsync_ms=settings.log.fsync_ms,
    )


def _tell_log_alarm(folder: Path, alarm: LogAlarm) -> None:
    if alarm.trouble is None:
        _log.info("usage log goes on", folder=str(folder), lost=alarm.lost)
    else:
        # A full disk stops logging, never limiting.
        _log.error("usage log stopped", folder=str(folder), reason=alarm.trouble)


def _tell_log_trimmed(folder: Path, removal: Removal) -> None:
    segment = removal.segment
    about = {
        "folder": str(folder),
        "reason": removal.reason.value,
        "first_index": segment.first_index,
        "last_index": segment.last_index,
        "bytes": segment.size,
    }
    if removal.passed:
        _log.warning(
            "usage log segment deleted before it was read", unread_by=list(removal.passed), **about
        )
    else:
        _log.info("usage log segment deleted", **about)
