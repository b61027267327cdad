"""Reads the head of a request.

Law: what nobody could read in two ways passes, and nothing else: HTTP/1.0 or 1.1, one host, one length or chunks, lines
that end as they should. What is no such head is refused (400, 431), and its connection ends.

The bytes are parsed by httptools, which must find in them one head and nothing else. It refuses two lengths, a length beside
chunks, folded lines, bare line feeds, and whatever is no name or no value.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import httptools
from multidict import CIMultiDict, MultiDict

from rgd.adapters.http.errors import BodyTooLarge, CallError
from rgd.adapters.http.gate import OTHER_ROUTE
from rgd.adapters.http.reply import NO_QUERY, Call
from rgd.adapters.http.route_table import NO_PARTS, Route, RouteTable
from rgd.adapters.http.target import bad_target, check_target
from rgd.adapters.http.tokens import Tokens
from rgd.ports.door import Scope, is_loopback

#: Longest head, longest line of it in bytes, and most headers; more is 431.
HEAD_BYTES_MAX: Final = 64 << 10
LINE_BYTES_MAX: Final = 8190
HEADERS_MAX: Final = 128

#: Most parameters of a query that is read.
PARAMETERS_MAX: Final = 64

#: The length of a body in chunks: longer than what is there.
UNKNOWN_LENGTH: Final = 1 << 62

_VERSIONS: Final = ("1.0", "1.1")
_HOST: Final = re.compile(r"[^\s,/?#@]*")
#: Hosts that nobody's name server can point at this machine: addresses, localhost, names without a dot.
_OWN_HOST: Final = re.compile(r"([\d.]+|\[[^]]*]|[^.:]*|.*\.localhost)(:\d*)?")
#: Headers that are one list, in however many lines they come.
_LISTS: Final = ("Accept", "Connection")
_CONNECTION: Final = re.compile(r"(?:^|,)[ \t]*(close|keep-alive)[ \t]*(?=,|$)")


class Head:
    """A request's head, of which many requests of a connection have the same."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], length: int) -> None:
        self.method = method
        self.is_head = method == "HEAD"
        self.raw_path, _, self._raw_query = target.partition("#")[0].partition("?")
        self.headers = headers
        #: Bytes of the body, or `UNKNOWN_LENGTH`.
        self.length = length
        self.authorization = headers.get("Authorization", "")
        self.path = NO_PARTS
        self.query: Mapping[str, str] = NO_QUERY
        #: Who answers; set by `to` or `refused`.
        self.handler: Callable[[Call], Any]
        self.route = OTHER_ROUTE
        self.scope: Scope | None = None
        self.is_probe = False
        #: Whether the body has to be there before it is answered, and is asked for.
        self.waits = self.expects = False
        #: Whether it is of HTTP/1.0, and whether the connection ends with its answer.
        self.is_old = self.is_last = False
        #: Whether nothing of this matters for a usual answer.
        self.is_usual = True
        #: Why another site's page may have sent it; empty: none has.
        self.foreign = ""
        #: The tokens by which it was let pass; other ones have to look again.
        self.tokens: Tokens | None = None

    def to(self, route: Route, parts: Mapping[str, str], handler: Callable[..., Any]) -> None:
        """It asks for this call."""
        self.route, self.path, self.handler = route.path, parts, handler
        self.scope, self.is_probe = route.scope, route.is_probe
        self.waits = route.takes_body
        if route.takes_query and self._raw_query:
            if self._raw_query.count("&") >= PARAMETERS_MAX:
                raise bad_target("more", f"at most {PARAMETERS_MAX} parameters")
            self.query = MultiDict(parse_qsl(self._raw_query, keep_blank_values=True))

    def refuse(self, error: CallError) -> None:
        """Its answer is this error; nothing of its body is needed for that."""

        def refused(_call: Call) -> Any:
            raise error

        # Its frames would keep the head, and the head keeps the error.
        error.__traceback__ = None
        self.handler, self.waits = refused, False


class _Reader:
    """What httptools calls."""

    __slots__ = ("begun", "ended_head", "has_body", "headers", "target")

    def __init__(self) -> None:
        self.begun = 0
        self.ended_head = 0
        self.has_body = False
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []

    def on_message_begin(self) -> None:
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.ended_head += 1

    def on_body(self, _: bytes) -> None:
        self.has_body = True


def check_begun(begun: bytes) -> None:
    """Refuse what will be no head however it goes on.

    Raises:
        CallError
    """
    _parsed(begun)


def read_head(
    head: bytes,
    routes: RouteTable,
    length_max: int,
    handler_of: Callable[[str, Route, str], Callable[..., Any]],
) -> Head:
    """The head of a request. Where a call cannot be made as it is asked for, its handler raises the error.

    Args:
        head: up to its empty line and with it.
        routes: the calls.
        length_max: of a body, in bytes.
        handler_of: who answers a call, given the method, the call and the header `Authorization`.

    Raises:
        CallError: there is no telling where the request ends.
    """
    reader, parser = _parsed(head)
    if (reader.begun, reader.ended_head, reader.has_body) != (1, 1, False):
        raise _malformed("expected one head")
    version = parser.get_http_version()
    if version not in _VERSIONS:
        raise _malformed("Invalid HTTP version")
    headers = CIMultiDict(
        # The parser leaves the space after a value.
        (
            name.decode("utf-8", "surrogateescape"),
            value.decode("utf-8", "surrogateescape").strip(" \t"),
        )
        for name, value in reader.headers
    )
    _check_headers(headers, version)
    target = _origin(reader.target).decode("utf-8", "surrogateescape")
    read = Head(parser.get_method().decode(), target, headers, _length_of(headers))
    _set_end(read, version)
    try:
        # A gateway's own caller chose what is below; it is not read (docs/gateways.md).
        if not target.startswith("/v1/check/"):
            check_target(target)
        found = routes.find(read.method, read.raw_path)
        read.to(*found, handler_of(read.method, found.route, read.authorization))
        if read.waits and length_max < read.length < UNKNOWN_LENGTH:
            raise BodyTooLarge(length_max)
        read.expects = read.waits and not read.is_old and _expects(headers)
    except CallError as exc:
        read.refuse(exc)
    return read


def foreign_of(head: Head, transport: asyncio.BaseTransport) -> str:
    """Why a page of another site may have sent this; empty where none has, or where anybody may."""
    if head.is_probe or head.route.startswith("/v1/check"):
        # Proxies pass on there what their own callers said.
        return ""
    host = head.headers.get("Host", "").lower()
    origin = head.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != host:
        return "Origin: expected this daemon's own pages, for no tokens are set"
    if not _OWN_HOST.fullmatch(host):
        own = transport.get_extra_info("sockname")
        if isinstance(own, tuple) and is_loopback(own[0]):
            return "Host: expected an address, localhost or a name without a dot, for no tokens are set"
    return ""


def _parsed(head: bytes) -> tuple[_Reader, httptools.HttpRequestParser]:
    """What httptools finds in the beginning of a request.

    Raises:
        CallError
    """
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        # It is answered as any other request.
        pass
    except httptools.HttpParserError as exc:
        raise _malformed(str(exc)) from None
    if len(head) > LINE_BYTES_MAX and _longest(reader) > LINE_BYTES_MAX:
        expected = f"expected request line and headers of at most {LINE_BYTES_MAX} bytes each"
        raise CallError(431, expected)
    if len(reader.headers) > HEADERS_MAX or len(head) > HEAD_BYTES_MAX:
        expected = f"expected at most {HEADERS_MAX} headers and {HEAD_BYTES_MAX} bytes of them"
        raise CallError(431, expected)
    return reader, parser


def _malformed(why: str) -> CallError:
    """The bytes are no request."""
    return CallError(400, f"malformed request: {why}")


def _longest(reader: _Reader) -> int:
    """Bytes of the longest part of a line."""
    return max(map(len, (reader.target, *(part for header in reader.headers for part in header))))


def _check_headers(headers: CIMultiDict[str], version: str) -> None:
    for name in _LISTS:
        if name in headers:
            headers[name] = ", ".join(headers.getall(name))
    hosts = headers.getall("Host", ())
    if (not hosts and version == "1.1") or not _HOST.fullmatch(",".join(hosts)):
        raise _malformed("expected the header Host once, with one host")
    if headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise _malformed("Transfer-Encoding: expected chunked")
    if "Transfer-Encoding" in headers and version == "1.0":
        # A proxy of that version may have passed it on unread (RFC 9112, 6.1).
        raise _malformed("Transfer-Encoding: expected HTTP/1.1")


def _length_of(headers: Mapping[str, str]) -> int:
    if "Transfer-Encoding" in headers:
        return UNKNOWN_LENGTH
    # Python refuses to read thousands of leading zeros.
    length = headers.get("Content-Length", "").lstrip("0")
    return min(int(length or 0), UNKNOWN_LENGTH - 1)


def _expects(headers: Mapping[str, str]) -> bool:
    """Whether the body comes once it is asked for."""
    if headers.get("Expect", "100-continue").lower() != "100-continue":
        raise CallError(417, "Expect: expected 100-continue")
    return "Expect" in headers


def _set_end(head: Head, version: str) -> None:
    """Whether the connection goes on after its answer; to another protocol it never goes."""
    told = head.headers.get("Connection")
    said = _CONNECTION.findall(told.lower()) if told else ()
    head.is_old = version == "1.0"
    is_kept = "keep-alive" in said if head.is_old else "close" not in said
    head.is_last = not is_kept or "Upgrade" in head.headers
    head.is_usual = not (head.is_head or head.is_last or head.is_old)


def _origin(target: bytes) -> bytes:
    """Path and query of a target that names a host, too."""
    if target.startswith(b"/"):
        return target
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserError:
        return target
    return (url.path or b"/") + b"?" + (url.query or b"")
