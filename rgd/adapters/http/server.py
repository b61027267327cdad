"""The HTTP server of one daemon in one process: its `front`, and the `plane` behind it."""

import time
from collections.abc import Callable

from typing_extensions import override

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.front import Front, observe_nothing
from rgd.adapters.http.plane import Plane
from rgd.adapters.http.reply import MetricsPage, Observer
from rgd.adapters.http.settings import HttpSettings
from rgd.ports.daemon import WholeDaemon
from rgd.ports.live_door import LiveDoor
from rgd.ports.log_door import LogDoor
from rgd.ports.metrics import Sample


class HttpServer(Front):
    """The door to one daemon; an async context manager.

    Raises:
        ConfigError: the settings cannot be used, or would let strangers in.
    """

    def __init__(  # noqa: PLR0913 -- the doors are two of seven
        self,
        daemon: WholeDaemon,
        settings: HttpSettings,
        *,
        metrics: MetricsPage,
        log_door: LogDoor | None = None,
        live_door: LiveDoor | None = None,
        observe: Observer = observe_nothing,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.plane = Plane(
            daemon,
            settings,
            metrics=metrics,
            needs_token=lambda: bool(self.tokens),
            log_door=log_door,
            live_door=live_door,
        )
        super().__init__(
            daemon,
            settings,
            self.plane.forward,
            observe=observe,
            clock=clock,
        )
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
