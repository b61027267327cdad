"""aiohttp's connections, with our words for what they refuse by themselves.

Bytes that are not HTTP never become a request; aiohttp would answer them in
plain text and log a traceback. Here they get the same JSON as every other
error and are counted, not logged: anybody can send them.
"""

from collections.abc import Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict
from typing_extensions import override

from rgd.adapters.http.reply import JSON, NO_HEADERS, Reply, json_reply

#: Longest request line and longest header, in bytes; more is 431.
LINE_BYTES_MAX: Final = 8190
HEADER_BYTES_MAX: Final = 8190

#: What we say we are; aiohttp would tell its and Python's version.
SERVER: Final = "rgd"

_SHOWN_CHARS_MAX: Final = 100
_USUAL_HEADERS: Final = CIMultiDict({"Server": SERVER, "Content-Type": JSON})

#: Told the status of an answer to something that was no request.
OnMalformed = Callable[[int], None]


class Connections(web.Server):
    """Makes a `Connection` for each client that comes."""

    def __init__(self, handler: Any, on_malformed: OnMalformed, **options: Any) -> None:
        super().__init__(
            handler,
            access_log=None,
            # A body is what was sent: no compressed bombs.
            auto_decompress=False,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            **options,
        )
        self._on_malformed = on_malformed

    @override
    def __call__(self) -> web.RequestHandler:
        return Connection(self, self._on_malformed, loop=self._loop, **self._kwargs)


class Connection(web.RequestHandler):
    """One client."""

    __slots__ = ("_on_malformed",)

    def __init__(self, manager: web.Server, on_malformed: OnMalformed, **options: Any) -> None:
        super().__init__(manager, **options)
        self._on_malformed = on_malformed

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer bytes that are no request, and close."""
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            # Nobody is left to be told; aiohttp closes in silence for this one.
            raise ConnectionResetError from exc
        reply = _reply_to(status, exc, message)
        self._on_malformed(reply.status)
        response = response_of(reply)
        response.force_close()
        return response


def response_of(reply: Reply) -> web.Response:
    """Make aiohttp's response of a reply."""
    status, body, headers, content_type = reply
    if headers is NO_HEADERS and content_type is JSON and status != 204:
        return web.Response(status=status, body=body, headers=_USUAL_HEADERS)
    told = {"Server": SERVER, **headers}
    if status != 204:
        told["Content-Type"] = content_type
    return web.Response(status=status, body=body, headers=told)


def _reply_to(status: int, exc: BaseException | None, message: str | None) -> Reply:
    if isinstance(exc, LineTooLong):
        reason = f"expected request line and headers of at most {HEADER_BYTES_MAX} bytes each"
        return json_reply({"reason": reason}, status=431)
    first_line = (message or "").partition("\n")[0].rstrip(": ")[:_SHOWN_CHARS_MAX]
    return json_reply({"reason": f"malformed request: {first_line}"}, status=status)
