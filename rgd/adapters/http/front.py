"""The front of the HTTP server: all that connections need, opened, drained and closed.

Law: from `open` to `close` every request gets an answer; `close` lets those in
flight end. Settings that would let strangers in are refused before anything is
opened. Nothing here loads what only the plane needs (a contract of .importlinter), so a process that only answers can
have it alone.

A connection is a `fast_lane.Lane`. It answers the calls of `hot`, and passes the others on (`forward`), which are known
once the plane has said what they are. The sockets are `listening`. How long the daemon lives is `rgd.app`'s business.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from rgd.adapters.http.byte_limits import BodyBudget, UnreadAnswers
from rgd.adapters.http.connection import Lanes
from rgd.adapters.http.connection_limits import Closed, ConnectionLimits, Refused
from rgd.adapters.http.fast_lane import Lane
from rgd.adapters.http.forward import Forward
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.guard import Bounds
from rgd.adapters.http.hot import HotCalls
from rgd.adapters.http.listening import listen_tcp, listen_unix
from rgd.adapters.http.reply import Observer
from rgd.adapters.http.route_table import Route, RouteTable
from rgd.adapters.http.settings import HttpSettings, check
from rgd.adapters.http.tls import Certificates, Greeting, TlsGreeter
from rgd.adapters.http.tokens import Tokens
from rgd.ports.answers import Answers
from rgd.ports.metrics import Sample


class Front:
    """The door to one daemon; an async context manager.

    Until `serve` every call that is not hot is answered 503.

    Args:
        daemon: decides.
        settings: of the door.
        forward: answers what is not hot.
        observe: told of every answer.
        clock: seconds, monotonic.

    Raises:
        ConfigError: the settings cannot be used, or would let strangers in.
    """

    def __init__(
        self,
        daemon: Answers,
        settings: HttpSettings,
        forward: Forward,
        *,
        observe: Observer,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        check(settings)
        self._settings = settings
        self._forward = forward
        self._bodies = BodyBudget(settings.bodies_max_bytes)
        self._bounds = _bounds_of(settings)
        #: No room for ordinary connections: all are in the reserve, which may ask for probes only.
        self._probe_bounds = self._bounds._replace(connections=ConnectionLimits(0, 0))
        self._gate = Gate(settings.tokens, observe, clock)
        self._hot = HotCalls(daemon, settings, self._gate)
        #: The calls that are known.
        self.routes = RouteTable(self._hot.routes, is_whole=False)
        #: Once it is open: those of `settings.port` and the unix socket, and of `probe_address`.
        self._lanes: list[Lanes] = []
        #: Of `probe_address`, once it is open.
        self.probe_port: int | None = None
        #: None without TLS.
        self._greeting: Greeting | None = None
        self._listeners: list[asyncio.Server] = []
        self._remove_socket: Callable[[], None] | None = None
        self._port = settings.port

    def serve(self, routes: Iterable[Route]) -> None:
        """From now on these are the calls beside the hot ones, on every connection."""
        self.routes = RouteTable((*self._hot.routes, *routes))
        for lanes in self._lanes:
            lanes.replace_routes(self.routes)

    @property
    def tokens(self) -> Tokens:
        """Those in force; empty: no call needs one."""
        return self._gate.tokens

    @property
    def port(self) -> int:
        """The TCP port: the configured one, and once open the one that is listened on."""
        return self._port

    def samples(self) -> list[Sample]:
        """The door's figures as they stand now (docs/metrics.md)."""
        usual, probes = self._bounds.connections, self._probe_bounds.connections
        shadow = self._hot.shadow
        counts: dict[str, Mapping[Any, int]] = {
            "rgd_http_connections_refused_total": {
                of: usual.refused[of] + probes.refused[of] for of in Refused
            },
            "rgd_http_connections_closed_total": {
                of: usual.closed[of] + probes.closed[of] for of in Closed
            },
            "rgd_http_shadow_total": shadow.counts if shadow else {},
            "rgd_http_unauthorised_total": self._gate.unauthorised,
        }
        return [
            Sample("rgd_http_connections", (), usual.open + probes.open),
            *(Sample(name, (of,), count) for name in counts for of, count in counts[name].items()),
            Sample("rgd_http_unread_bytes", (), self._bounds.unread.total),
            Sample("rgd_http_body_bytes", (), self._bodies.used),
        ]

    async def open(self) -> None:
        """Listen.

        Raises:
            Unavailable: an address cannot be taken; the message says what to do.
            ConfigError: the certificate cannot be used.
        """
        settings = self._settings
        accept = self._accept_within(self._bounds)
        address = settings.host, settings.port
        try:
            if settings.tls_cert is None or settings.tls_key is None:
                listener = await listen_tcp(accept, address)
            else:
                certificates = Certificates(
                    settings.tls_cert, settings.tls_key, settings.tls_client_ca
                )
                self._greeting = Greeting(accept, self._bounds, certificates)
                greet = partial(TlsGreeter, self._greeting)
                listener = await listen_tcp(greet, address)
            self._listeners.append(listener)
            self._port = listener.sockets[0].getsockname()[1]
            if settings.unix_socket is not None:
                listener, self._remove_socket = await listen_unix(accept, settings.unix_socket)
                self._listeners.append(listener)
            if settings.probe_address is not None:
                await self._listen_for_probes(settings.probe_address)
        except BaseException:
            await self.close()
            raise

    async def _listen_for_probes(self, address: tuple[str, int]) -> None:
        accept = self._accept_within(self._probe_bounds)
        listener = await listen_tcp(accept, address, "http.probe_listen")
        self._listeners.append(listener)
        self.probe_port = listener.sockets[0].getsockname()[1]

    def _accept_within(self, bounds: Bounds) -> Callable[[], Lane]:
        """What makes the connections of a listener."""
        lanes = Lanes(self.routes, self._settings, self._gate, self._bodies, bounds, self._forward)
        self._lanes.append(lanes)
        return partial(Lane, lanes)

    def replace_tokens(self, tokens: Tokens) -> None:
        """Put other tokens in force; they count from the next request on, on every connection.

        Without any, everybody could ask: where tokens are needed to listen, none is refused.

        Raises:
            ConfigError: the address that is listened on needs tokens.
        """
        check(replace(self._settings, tokens=tokens))
        self._gate.tokens = tokens

    def reload_certificate(self) -> None:
        """Read the certificate, its key and the clients' authority again; new handshakes use them.

        For any thread. Where the authority is another one, connections that were accepted by the old one end.

        Raises:
            ConfigError: they cannot be used; the old ones stay in force.
        """
        if self._greeting is None:
            return
        certificates = self._greeting.certificates
        before = certificates.authority
        certificates.load()
        if certificates.authority != before:
            self._greeting.loop.call_soon_threadsafe(self._end_others, self._greeting)

    def _end_others(self, greeting: Greeting) -> None:
        for lanes in self._lanes:
            greeting.start(lanes.end_others(greeting.certificates.authority))

    def drain(self) -> None:
        """From now on `/readyz` says 503 and every answer sends its client elsewhere."""
        self._gate.draining = True

    async def close(self) -> None:
        """Stop listening and let what is in flight end, within `close_timeout_s`. Idempotent."""
        self.drain()
        if self._remove_socket is not None:
            self._remove_socket()
            self._remove_socket = None
        while self._listeners:
            self._listeners.pop().close()
        open_lanes, self._lanes = self._lanes, []
        # Those that were just accepted get their first turn.
        await asyncio.sleep(0)
        if self._greeting is not None:
            self._greeting.close()
        async with asyncio.TaskGroup() as ending:
            for lanes in open_lanes:
                ending.create_task(lanes.shutdown(self._settings.close_timeout_s))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


def _bounds_of(settings: HttpSettings) -> Bounds:
    return Bounds(
        ConnectionLimits(settings.connections_max, settings.connections_per_address_max),
        UnreadAnswers(settings.unread_max_bytes),
        request_timeout_s=settings.request_timeout_s,
        answer_timeout_s=settings.answer_timeout_s,
    )
