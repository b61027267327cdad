"""Reads the head of a request for the fast lane, or leaves it to aiohttp.

Law: the lane takes what nobody can read in two ways: HTTP/1.1, each header once, the body's length in plain
digits. Everything else is None: chunks, `Expect`, `Upgrade`, `Connection: close`, a path with escapes, what is
malformed. aiohttp answers it, so there is one place that decides about every strange request.

The bytes are parsed by httptools, which must find in them one head and nothing else.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from multidict import CIMultiDict, MultiDict

from rgd.adapters.http.errors import BadTarget
from rgd.adapters.http.hot_routes import Found, HotRoutes
from rgd.adapters.http.reply import NO_QUERY, HotHandler
from rgd.adapters.http.target import check_target
from rgd.adapters.http.tokens import Tokens

try:
    import httptools
except ImportError:  # no build for this platform: aiohttp answers everything
    httptools = None  # type: ignore[assignment]  # asked for by `IS_AVAILABLE`

#: Whether there is a fast lane at all.
IS_AVAILABLE: Final = httptools is not None

#: Longest head that the lane reads; aiohttp has limits of its own for longer ones.
HEAD_BYTES_MAX: Final = 8 << 10
#: Most headers; a caller of hot calls sends some ten.
HEADERS_MAX: Final = 64
_LENGTH_DIGITS_MAX: Final = 12

#: Headers that change how a request is read or answered.
_UNUSUAL: Final = frozenset({"expect", "trailer", "transfer-encoding", "upgrade"})


class Head:
    """A request's head, of which many requests of a connection have the same."""

    __slots__ = (
        "authorization",
        "handler",
        "headers",
        "is_head",
        "length",
        "method",
        "path",
        "query",
        "raw_path",
        "route",
        "scope",
        "tokens",
    )

    def __init__(
        self, method: str, target: str, found: Found, headers: Mapping[str, str], length: int
    ) -> None:
        endpoint = found.endpoint
        self.method = method
        self.is_head = method == "HEAD"
        self.raw_path, _, query = target.partition("?")
        self.route = endpoint.path
        self.scope = endpoint.scope
        self.handler: HotHandler = endpoint.handler
        self.path = found.parts
        self.query: Mapping[str, str] = NO_QUERY
        if endpoint.query and query:
            self.query = MultiDict(parse_qsl(query, keep_blank_values=True))
        self.headers = headers
        #: Bytes of the body.
        self.length = length
        self.authorization = headers.get("Authorization", "")
        #: The tokens by which it was let pass; other ones have to look again.
        self.tokens: Tokens | None = None


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


def read_head(head: bytes, routes: HotRoutes, length_max: int) -> Head | None:
    """The head of a hot call; None where aiohttp has to answer.

    Args:
        head: up to its empty line and with it.
        routes: the hot calls.
        length_max: of a body, in bytes.
    """
    read = _parsed(head)
    if read is None:
        return None
    method, target, headers = read
    length = _length_of(headers, length_max)
    found = routes.find(method, target.partition("?")[0])
    if found is None or length is None or not _is_text(target):
        return None
    takes_body = found.endpoint.body is not None
    if takes_body == ("Content-Length" not in headers) and (takes_body or length):
        return None
    return Head(method, target, found, headers, length)


def _parsed(head: bytes) -> tuple[str, str, CIMultiDict[str]] | None:
    """Method, target and headers of bytes that are one head of HTTP/1.1 in ASCII."""
    if not head.isascii() or not head[:1].isalpha():
        return None
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    is_one = (reader.begun, reader.ended_head, reader.has_body) == (1, 1, False)
    if not is_one or parser.get_http_version() != "1.1" or len(reader.headers) > HEADERS_MAX:
        return None
    headers = CIMultiDict(
        # The parser leaves the space after a value.
        (name.decode(), value.decode().strip(" \t"))
        for name, value in reader.headers
    )
    names = {name.lower() for name in headers}
    if len(names) < len(headers) or names & _UNUSUAL or "host" not in names:
        return None
    if headers.get("Connection", "keep-alive").lower() != "keep-alive":
        return None
    return parser.get_method().decode(), reader.target.decode(), headers


def _length_of(headers: Mapping[str, str], length_max: int) -> int | None:
    """The body's length; None where it is no plain number, or too large."""
    said = headers.get("Content-Length", "0")
    if not said.isdigit() or len(said) > _LENGTH_DIGITS_MAX:
        return None
    length = int(said)
    return length if length <= length_max else None


def _is_text(target: str) -> bool:
    if "#" in target:
        return False
    try:
        check_target(target)
    except BadTarget:
        return False
    return True
