"""A daemon in one process, for tests and benches that need both halves at hand: gate and plane joined by plain calls.

`rgd serve` never runs one; its two processes are tests/e2e's and tests/unit/app/planes'.
"""

from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.front import Front
from rgd.adapters.http.plane import Plane
from rgd.adapters.http.reply import MetricsPage, Observer
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.metrics.exposition import Exposition
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.answering import Answering
from rgd.app.clock import SystemClock
from rgd.app.daemon import Agreeing, Parts
from rgd.app.policies.source import Policies
from rgd.app.process import new_incarnation
from rgd.app.wiring import assemble, core_of
from rgd.config.settings import Settings
from rgd.core.broker.broker import Broker
from rgd.core.broker.settings import BrokerSettings
from rgd.ports.answers import Answers
from rgd.ports.daemon import Daemon
from rgd.ports.exchange import Exchange
from rgd.ports.live_door import LiveDoor
from rgd.ports.log_door import LogDoor
from rgd.ports.metrics import Sample


class WholeDaemon(Answers, Daemon, Protocol):
    """What the server needs of one."""


class RgdDaemon(Agreeing, Answering):
    """One broker that agrees and answers."""

    def __init__(self, core: Broker, parts: Parts, cluster: str) -> None:
        self.limiter, self.leases = core.limiter, core.leases
        super().__init__(core, parts, cluster)


def build(settings: Settings, url: str) -> tuple[RgdDaemon, Exposition]:
    """Assemble one as `rgd serve` does; nothing is opened yet."""
    return assemble(settings, url, core_of(settings, None, new_incarnation()), RgdDaemon)


def daemon_of(
    settings: BrokerSettings, folder: Path, exchange: Exchange, policies: Policies, **parts: Any
) -> RgdDaemon:
    """One that logs in a folder, with further `Parts`; nothing is opened yet."""
    clock, name = SystemClock(), settings.sender.broker
    log = SegmentedLog(
        folder / "log",
        UsageLogSettings(),
        broker=name,
        clock=clock.now,
        on_alarm=lambda _alarm: None,
    )
    made = Parts(
        clock=clock,
        exchange=exchange,
        # Nobody here has shards.
        shard_exchange=parts.pop("shard_exchange", lambda _shard: exchange),
        policies=policies,
        usage_log=log,
        remember=lambda _peers: None,
        observe_round=lambda _seconds: None,
        **parts,
    )
    return RgdDaemon(Broker(settings, clock.now()), made, "standalone")


def observe_nothing(route: str, status: int, seconds: float) -> None:
    """Count nothing."""


class HttpServer(Front):
    """The door to one daemon; an async context manager.

    Raises:
        ConfigError: the settings cannot be used, or would let strangers in.
    """

    def __init__(
        self,
        daemon: WholeDaemon,
        settings: HttpSettings,
        *,
        metrics: MetricsPage,
        log_door: LogDoor | None = None,
        live_door: LiveDoor | None = None,
        observe: Observer = observe_nothing,
    ) -> None:
        self.plane = Plane(
            daemon,
            settings,
            metrics=metrics,
            needs_token=lambda: bool(self.tokens),
            log_door=log_door,
            live_door=live_door,
        )
        super().__init__(daemon, settings, self.plane.forward, observe=observe)
        self.serve(self.plane.routes)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All calls."""
        return self.plane.endpoints

    @override
    def samples(self) -> list[Sample]:
        return [*super().samples(), *self.plane.samples()]

    @override
    def drain(self) -> None:
        super().drain()
        self.plane.drain()
