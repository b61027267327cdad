"""The path of a request: find the call, check the token, read the body, ask, answer, count.

Law: whatever comes in, there is an answer with a status and, where it is an
error, a JSON `{"reason"}`; it is counted; and the process lives on. A client
that goes away is no error and gets nothing.

`routes` lists the calls; who answers them is there too. What holds on the fast lane as well stands in
`gate`; what an error's status is, in `errors`; what aiohttp refuses before this path begins, in
`connection`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from typing import Final

from aiohttp import web

from rgd.adapters.http.byte_limits import BodyBudget, HeldBody
from rgd.adapters.http.connection import Connection, response_of
from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.errors import BadBody, BodyTooLarge, BodyTooSlow
from rgd.adapters.http.gate import OTHER_ROUTE, Gate
from rgd.adapters.http.headers import headers_of
from rgd.adapters.http.plane_errors import reply_to
from rgd.adapters.http.reply import EVENT_STREAM, NO_QUERY, Call, Reply, reply_of
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.target import check_target
from rgd.adapters.http.turns import ReadTurns
from rgd.ports.door import CALLER, Scope

#: A part of a path that the caller names, and whether it may hold slashes.
_PART: Final = re.compile(r"\{(\w+)(:path)?\}")

_CHUNKED: Final = "chunked"

#: The head of a stream; proxies are asked to pass on each message at once.
_STREAM: Final = Reply(
    headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, content_type=EVENT_STREAM
)


class _ClientGone(Exception):
    """The client went away while it sent its body."""


class Dispatcher:
    """Carries requests to their calls."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        settings: HttpSettings,
        gate: Gate,
        bodies: BodyBudget,
        *,
        reads: ReadTurns,
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._bodies = bodies
        self._reads = reads
        self.router = web.UrlDispatcher()
        self._endpoint_of: dict[web.AbstractRoute, Endpoint] = {}
        for endpoint in endpoints:
            methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
            for method in methods:
                route = self.router.add_route(method, _routed(endpoint.path), self.serve)
                self._endpoint_of[route] = endpoint

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        gate = self._gate
        began = gate.clock()
        path = OTHER_ROUTE
        try:
            check_target(request.raw_path)
            match = await self.router.resolve(request)
            if match.http_exception is not None:
                raise match.http_exception  # noqa: TRY301 -- it joins all other errors
            endpoint = self._endpoint_of[match.route]
            path = endpoint.path
            if not endpoint.is_probe:
                _check_connection(request)
            authorization = request.headers.get("Authorization", "")
            gate.authorise(endpoint.scope, authorization)
            if endpoint.scope is Scope.ADMIN:
                CALLER.set(gate.caller(authorization))
            if endpoint.stream is not None and _wants_stream(request):
                async with endpoint.stream(_call_of(endpoint, request, match, b"")) as messages:
                    return await self._stream(endpoint, request, messages, began)
            if endpoint.scope is Scope.READ and not endpoint.is_probe:
                async with self._reads.taken():
                    reply = await self._call(endpoint, request, match, b"")
            elif endpoint.body is None:
                reply = await self._call(endpoint, request, match, b"")
            else:
                with self._bodies.hold() as held:
                    body = await self._read(request, match, held)
                    reply = await self._call(endpoint, request, match, body)
        except _ClientGone as exc:
            # `connection` closes in silence for this one.
            raise ConnectionResetError from exc
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            reply = gate.reply_to(exc, request.method, path, reply_to)
            # The router's errors are kept by what was found, which is kept by this frame.
            exc.__traceback__ = None
        gate.observe(path, reply.status, gate.clock() - began)
        response = response_of(reply)
        if gate.draining or not request.content.is_eof() or _is_last(request, reply):
            response.force_close()
        return response

    async def _call(
        self, endpoint: Endpoint, request: web.Request, match: web.UrlMappingMatchInfo, body: bytes
    ) -> Reply:
        return await reply_of(endpoint.handler(_call_of(endpoint, request, match, body)))

    async def _stream(
        self,
        endpoint: Endpoint,
        request: web.Request,
        messages: AsyncIterator[bytes],
        began: float,
    ) -> web.StreamResponse:
        """Send messages until they end, the client leaves, or its token no longer counts."""
        gate, connection = self._gate, request.protocol
        assert isinstance(connection, Connection), "what `Connections` makes"
        response = web.StreamResponse(headers=headers_of(_STREAM))
        response.force_close()
        connection.begin_stream()
        gate.observe(endpoint.path, response.status, gate.clock() - began)
        authorization = request.headers.get("Authorization", "")
        try:
            await response.prepare(request)
            async for message in messages:
                if connection.is_ending or not gate.lets(endpoint.scope, authorization):
                    break
                await response.write(message)
                await connection.until_read()
        except OSError as exc:
            raise _ClientGone from exc
        except Exception as exc:  # noqa: BLE001 -- the answer has begun: there is no other one
            gate.reply_to(exc, request.method, endpoint.path, reply_to)
        return response

    async def _read(
        self, request: web.Request, match: web.UrlMappingMatchInfo, held: HeldBody
    ) -> bytes:
        """Read the body, whole and within its limits of size and time."""
        if not _is_plainly_sent(request):
            raise BadBody("Transfer-Encoding: expected chunked")
        size_max = self._settings.body_max_bytes
        if request.content.is_eof():
            # It came with its head, as nearly all do.
            body = request.content.read_nowait()
            if len(body) > size_max:
                raise BodyTooLarge(size_max)
            held.take(len(body))
            return body
        if (request.content_length or 0) > size_max:
            # Said before a client that asks first begins to send.
            raise BodyTooLarge(size_max)
        # All of it at once, so that those who share the budget do not all stop half way.
        held.take(request.content_length or 0)
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                return await self._read_expected(request, match, held)
        except TimeoutError:
            raise BodyTooSlow(self._settings.request_timeout_s) from None

    async def _read_expected(
        self, request: web.Request, match: web.UrlMappingMatchInfo, held: HeldBody
    ) -> bytes:
        if request.headers.get("Expect"):
            await match.expect_handler(request)
            await request.writer.drain()
        size_max, size = self._settings.body_max_bytes, 0
        chunks: list[bytes] = []
        try:
            while chunk := await request.content.readany():
                size += len(chunk)
                if size > size_max:
                    raise BodyTooLarge(size_max)
                held.grow_to(size)
                chunks.append(chunk)
        except TimeoutError:
            raise  # the caller's clock
        except OSError as exc:
            raise _ClientGone from exc
        return b"".join(chunks)


def _routed(path: str) -> str:
    """A path for the router, which by itself would take no braces in a part; topics may have them."""
    return _PART.sub(lambda part: f"{{{part[1]}:{'.*' if part[2] else '[^/]+'}}}", path)


def _call_of(
    endpoint: Endpoint, request: web.Request, match: web.UrlMappingMatchInfo, body: bytes
) -> Call:
    query = request.query if endpoint.query else NO_QUERY
    return Call(match, request.headers, body, query, request.rel_url.raw_path)


def _wants_stream(request: web.Request) -> bool:
    return request.method == "GET" and EVENT_STREAM in request.headers.get("Accept", "")


def _is_last(request: web.Request, reply: Reply) -> bool:
    """Whether a connection ends with this answer: one for probes, or one of a strange encoding."""
    connection = request.protocol
    if isinstance(connection, Connection) and connection.is_for_probes:
        return True
    return reply.status == 400 and not _is_plainly_sent(request)


def _is_plainly_sent(request: web.Request) -> bool:
    """Whether the body's end is where everybody on the way sees it."""
    return request.headers.get("Transfer-Encoding", _CHUNKED).lower() == _CHUNKED


def _check_connection(request: web.Request) -> None:
    """Refuse what is no probe on a connection that may ask for probes only."""
    connection = request.protocol
    if isinstance(connection, Connection) and connection.is_for_probes:
        raise connection.refuse()
