"""The list of all calls, and the answers to those that connections do not answer themselves.

Laws:
- A call exists if and only if it stands here: method, path, the scope it needs, who answers, what it may answer. The router,
  the tokens' scopes and /openapi.json are all made from the list. Its part under `/admin/v2` is written in
  `pulsar_admin.routes`, what connections answer themselves in `hot`. `HEAD` goes wherever `GET` goes and is not listed.
- Whatever a handler raises is an answer, as in `errors`; but where a stream has begun, it ends.
- At most one read begins in a turn of the event loop, and what takes long in it lets the loop go on every few milliseconds.

What the gate has seen to already stands in `forward`.
"""

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from multidict import MultiDict

from rgd.adapters.http import openapi
from rgd.adapters.http.backlogs import Backlogs
from rgd.adapters.http.endpoint import answered, read
from rgd.adapters.http.errors import Overloaded, reply_to
from rgd.adapters.http.explain import Explain
from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.groups import Groups
from rgd.adapters.http.hot import HOT
from rgd.adapters.http.live import LIVE, Live
from rgd.adapters.http.live_page import page_endpoints
from rgd.adapters.http.log import Log
from rgd.adapters.http.pulsar_admin import routes as pulsar_admin
from rgd.adapters.http.reply import EVENT_STREAM, Call, Handler, MetricsPage, Reply, encode
from rgd.adapters.http.scrapes import Scrapes
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.turns import Turns
from rgd.ports.daemon import Daemon
from rgd.ports.door import CALLER, Scope
from rgd.ports.live_door import LiveDoor
from rgd.ports.log_door import LogDoor
from rgd.ports.metrics import Sample

#: Proxies are asked to pass on each message at once.
_STREAM: Final = Stream({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


class Plane:
    """All calls but the hot ones.

    Args:
        daemon: reads and changes.
        settings: the limits of calls.
        metrics: the page of all figures.
        needs_token: whether calls need a token now.
        log_door: None: there is no usage log to ask.
        live_door: None: there is no live view.
    """

    def __init__(
        self,
        daemon: Daemon,
        settings: HttpSettings,
        *,
        metrics: MetricsPage,
        needs_token: Callable[[], bool],
        log_door: LogDoor | None = None,
        live_door: LiveDoor | None = None,
    ) -> None:
        self._reads, self._reads_max = 0, settings.reads_max
        self._turns = Turns()
        self._live = None if live_door is None else Live(daemon, live_door)
        #: Held while a group is changed in part, deleted or attached to.
        writing = asyncio.Lock()
        calls = (Groups(daemon, writing), Explain(daemon), Backlogs(daemon.backlogs, settings))
        more = () if self._live is None else (*answered(self._live), *page_endpoints(needs_token))
        #: All calls, the hot ones without anybody who answers them.
        self.endpoints = (
            *HOT,
            *chain.from_iterable(map(answered, (*calls, Log(log_door)))),
            *more,
            *pulsar_admin.endpoints(daemon, writing),
            *answered(Scrapes(metrics)),
            *answered(self),
        )
        self.description = encode(openapi.document(self.endpoints))
        self._answered = {
            (endpoint.method, endpoint.path): (endpoint, endpoint.handler)
            for endpoint in self.endpoints
            if endpoint.handler is not None
        }
        #: What connections have to know of the calls that are passed on.
        self.routes = tuple(endpoint.route() for endpoint, _ in self._answered.values())

    def samples(self) -> list[Sample]:
        """The figures of these calls as they stand now (docs/metrics.md)."""
        return [Sample("rgd_http_live_streams", (), 0 if self._live is None else self._live.open)]

    def drain(self) -> None:
        """End all streams. Idempotent."""
        if self._live is not None:
            self._live.drain()

    async def forward(self, asked: Asked) -> Pieces:
        """As `forward.Forward`."""
        has_begun = False
        try:
            endpoint, handler = self._answered[_method(asked), asked.route]
            if asked.caller:
                CALLER.set(asked.caller)
            if self._live is not None and asked.route == LIVE and _wants_stream(asked):
                async with self._live.stream() as messages:
                    has_begun = True
                    yield _STREAM
                    async for message in messages:
                        yield message
                return
            query = MultiDict(asked.query)
            call = Call(asked.path, {"Accept": asked.accept}, asked.body, query, asked.raw_path)
            if endpoint.scope is Scope.READ and not endpoint.is_probe:
                reply = await self._read(handler, call)
            else:
                reply = await handler(call)
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            reply = reply_to(exc, asked.method, asked.route)
        if not has_begun:
            yield reply

    def is_read(self, asked: Asked) -> bool:
        """Whether a request is of no use to a client that is gone."""
        return self._answered[_method(asked), asked.route][0].scope is Scope.READ

    async def _read(self, handler: Handler, call: Call) -> Reply:
        if self._reads >= self._reads_max:
            raise Overloaded(f"{self._reads_max} reads are in work already; come back")
        self._reads += 1
        try:
            await self._turns.next()
            return await handler(call)
        finally:
            self._reads -= 1

    @read("/openapi.json", dict[str, Any])
    async def describe(self, _call: Call) -> Reply:
        """This description, OpenAPI 3.1."""
        return Reply(body=self.description)


def _method(asked: Asked) -> str:
    """As calls are listed: HEAD goes wherever GET goes."""
    return "GET" if asked.method == "HEAD" else asked.method


def _wants_stream(asked: Asked) -> bool:
    return asked.method == "GET" and EVENT_STREAM in asked.accept.lower()
