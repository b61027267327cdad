"""Client of Pulsar's admin API: single calls, every answer bounded in time and size.

Law: an answer is Pulsar's JSON, Pulsar's own "not found", or an error. A proxy's answer
(HTML, a 404 of its own) is never treated as Pulsar's.

Redirects are followed here, because Pulsar redirects a caller to the broker that owns a topic. The token
is sent along as with Pulsar's own client, but never from https to http. A call that is meant for one broker
only (`at`) follows none: a redirect says that this broker does not own the topic. Tokens are read from their
file again for every poll, so a rotated one needs no restart.

aiohttp is imported when a client is made, not with this module: it would add some 0.2 s to the start of a plane that makes none.
"""

# ruff: noqa: PLC0415 -- see above

import asyncio
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec.json import Decoder

from rgd.config.plain_files import TOKEN_BYTES_MAX, Fingerprint, fingerprint, read_plain_file
from rgd.config.settings import ExchangeSettings
from rgd.config.values import urls_of
from rgd.ports.stock import StockDown, StockError, StockRefused

if TYPE_CHECKING:
    import aiohttp

#: Most concurrent calls. Their answers may all arrive in one turn of the event loop, and each delays
#: requests by half a millisecond.
CONNECTIONS_MAX: Final = 4
#: Longest time of one call.
CALL_TIMEOUT_S: Final = 10.0
#: Largest answer that is read, where a call sets no other limit: a list of some 100,000 names.
BODY_BYTES_MAX: Final = 16 << 20
#: Largest header line of an answer. Pulsar returns a message's properties in one.
HEADER_BYTES_MAX: Final = 64 << 10
#: Most redirects of one call; Pulsar needs one.
REDIRECTS_MAX: Final = 5
#: Most characters of an admin API's answer in an error.
REASON_CHARS_MAX: Final = 200

#: All calls are below this path.
ADMIN_PATH: Final = "/admin/v2/"

_JSON: Final = {"Content-Type": "application/json"}
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
#: Statuses of Pulsar's own "not found"; 405 is a broker whose topic policies are disabled.
_NOTHING_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})

_Answer = TypeVar("_Answer")


class Missing(StockError):
    """Pulsar itself reports that the resource does not exist."""


class Moved(StockError):
    """The broker that was asked does not own the topic (now)."""


class _Complaint(msgspec.Struct):
    """Pulsar's ErrorData."""

    reason: str


_complaint: Final = Decoder(_Complaint)


class StockClient:
    """The admin API at `exchange.admin_url`. Must be made and used on one event loop."""

    def __init__(self, exchange: ExchangeSettings) -> None:
        import aiohttp

        assert exchange.admin_url is not None, "rgd.config.relations checks it"
        #: aiohttp's classes, here because this module does not import it.
        self._unreachable = (aiohttp.ClientConnectionError, TimeoutError, OSError)
        self._errors = (aiohttp.ClientError, *self._unreachable)
        self.url = exchange.admin_url
        self._bases = urls_of(self.url)
        #: The one that answered last; calls begin there.
        self._base = self._bases[0]
        self._session: aiohttp.ClientSession | None = None
        #: The one before, on which calls of others who share this client may be under way.
        self._former: aiohttp.ClientSession | None = None
        self._preparing = asyncio.Lock()
        self._headers: dict[str, str] = {}
        self._token_file = exchange.admin_token_file or exchange.token_file
        self._ca_file = exchange.admin_ca_file or exchange.tls_ca
        self._cert_file, self._key_file = exchange.tls_cert, exchange.tls_key
        self._pem_files = tuple(filter(None, (self._ca_file, self._cert_file, self._key_file)))
        self._pems: Fingerprint = ()

    @property
    def only_address(self) -> str:
        """`host:port` of the admin API; "" if there are several."""
        return urlsplit(self._base).netloc if len(self._bases) == 1 else ""

    async def prepare(self) -> None:
        """Read the token, and open a connection for the next calls; again if a certificate changed.

        Raises:
            StockRefused: the token or the certificates cannot be read.
        """
        try:
            async with self._preparing:
                self._headers = await asyncio.to_thread(_headers, self._token_file)
                pems = await asyncio.to_thread(fingerprint, self._pem_files)
                if self._session is None or pems != self._pems:
                    await self._renew()
                    self._pems = pems
        except (OSError, ValueError) as exc:
            raise StockRefused(f"token or certificates for Pulsar's admin API: {exc}") from exc

    async def _renew(self) -> None:
        """Open another session; the present one stays for the calls that are under way on it."""
        import aiohttp

        trust = await asyncio.to_thread(self._trust)
        last, self._former = self._former, self._session
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=CONNECTIONS_MAX),
            timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT_S),
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        if last is not None:
            await last.close()

    async def get(
        self, path: str, decoder: Decoder[_Answer], *, at: str | None = None
    ) -> _Answer | None:
        """Get a path below `/admin/v2/` (its parts quoted); None is Pulsar's null: not set.

        Args:
            path: what to get.
            decoder: of the answer.
            at: ask only this broker (its address as `locate` returned it), and follow no redirect.

        Raises:
            Missing: Pulsar reports that it does not exist.
            Moved: the broker at `at` does not own the topic.
            StockDown: no answer came.
            StockRefused: the answer is unusable.
        """
        reply = await self._reply(_Call("GET", path, at=at))
        return _decoded(path, reply.body, decoder)

    async def require(
        self,
        path: str,
        decoder: Decoder[_Answer],
        *,
        at: str | None = None,
        bytes_max: int = BODY_BYTES_MAX,
    ) -> _Answer:
        """As `get`, of at most so many bytes; null is no valid answer."""
        reply = await self._reply(_Call("GET", path, at=at, bytes_max=bytes_max))
        answer = _decoded(path, reply.body, decoder)
        if answer is None:
            raise StockRefused(f"{path}: expected an answer, got nothing")
        return answer

    async def locate(self, path: str, decoder: Decoder[_Answer]) -> tuple[_Answer | None, str]:
        """As `get`, and the address of the broker that answered after all redirects."""
        reply = await self._reply(_Call("GET", path))
        return _decoded(path, reply.body, decoder), reply.at

    async def head(self, path: str, *, at: str | None = None) -> Mapping[str, str]:
        """The headers that a GET would answer; raises as `get`."""
        return (await self._reply(_Call("HEAD", path, at=at))).headers

    async def send(
        self, method: str, path: str, body: object = None, *, at: str | None = None
    ) -> None:
        """Send a JSON body, perhaps to one broker; raises as `get`."""
        data = None if body is None else msgspec.json.encode(body)
        await self._reply(_Call(method, path, data, at))

    async def close(self) -> None:
        """Close every connection."""
        for session in filter(None, (self._former, self._session)):
            await session.close()
        self._former = self._session = None

    def _trust(self) -> ssl.SSLContext | bool:
        if self._ca_file is None and self._cert_file is None:
            return True
        trust = ssl.create_default_context(cafile=self._ca_file)
        if self._cert_file is not None:
            trust.load_cert_chain(self._cert_file, self._key_file, password="")
        return trust

    async def _reply(self, call: "_Call") -> "_Reply":
        """A successful answer."""
        path = call.path
        try:
            reply = await self._ask_one_of(call)
        except self._errors as exc:
            why = str(exc) or type(exc).__name__
            raise StockDown(f"{path}: {why}") from exc
        except ValueError as exc:
            # aiohttp's error for an invalid URL.
            raise StockRefused(f"{path}: {exc}") from exc
        status, body = reply.status, reply.body
        if status in {HTTPStatus.NO_CONTENT, HTTPStatus.OK}:
            return reply
        complaint = _complaint_of(body)
        shown = _shown(body) if complaint is None else complaint[:REASON_CHARS_MAX]
        text = f"{path} answered {status} {shown}".rstrip()
        if status in _NOTHING_THERE and (complaint is not None or call.method == "HEAD"):
            raise Missing(text)
        raise StockRefused(text, status)

    async def _ask_one_of(self, call: "_Call") -> "_Reply":
        """Ask the broker that is named, or those of the settings in turn until one answers."""
        if call.at is None:
            for _ in self._bases[1:]:
                base = self._base
                try:
                    return await self._ask(call)
                except self._unreachable:
                    if self._base == base:  # of concurrent calls one turns to the next
                        following = self._bases.index(base) + 1
                        self._base = self._bases[following % len(self._bases)]
        return await self._ask(call)

    async def _ask(self, call: "_Call") -> "_Reply":
        assert self._session is not None, "prepare() comes first"
        method, path, data, at, bytes_max = call
        url = f"{at or self._base}{ADMIN_PATH}{path}"
        headers = self._headers if data is None else self._headers | _JSON
        for _ in range(REDIRECTS_MAX + 1):
            async with self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False
            ) as response:
                if response.status not in _REDIRECTS:
                    body = await _bounded(path, response, bytes_max)
                    return _Reply(response.status, response.headers, body, _address_of(url))
                location = response.headers.get("Location", "")
                if at is not None:
                    raise Moved(
                        f"{path}: {at} does not own it, and names {_shown(location.encode())}"
                    )
                url = _next_url(path, url, location)
        raise StockRefused(f"{path}: more than {REDIRECTS_MAX} redirects")


class _Call(NamedTuple):
    """One call; `StockClient.get` says what its parts are."""

    method: str
    path: str
    data: bytes | None = None
    at: str | None = None
    bytes_max: int = BODY_BYTES_MAX


class _Reply(NamedTuple):
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    #: `scheme://host:port` of the broker that answered.
    at: str


def _headers(token_file: Path | None) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if token_file is not None:
        token = read_plain_file(token_file, TOKEN_BYTES_MAX).decode().strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError(f"{token_file}: expected one line with a token")
        headers["Authorization"] = f"Bearer {token}"
    return headers


async def _bounded(path: str, response: "aiohttp.ClientResponse", bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > bytes_max:
            # An unread rest would be read as the next answer.
            response.close()
            raise StockRefused(f"{path}: the answer is larger than {bytes_max} bytes")
    return bytes(body)


def _address_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _next_url(path: str, url: str, location: str) -> str:
    target = urljoin(url, location)
    scheme = urlsplit(target).scheme
    if not location or scheme not in {"http", "https"}:
        raise StockRefused(f"{path}: redirected to nowhere ({_shown(location.encode())})")
    if urlsplit(url).scheme == "https" and scheme == "http":
        raise StockRefused(f"{path}: redirected from https to http")
    return target


def _decoded(path: str, body: bytes, decoder: Decoder[_Answer]) -> _Answer | None:
    if not body:
        # Pulsar's form of null.
        return None
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise StockRefused(f"{path}: {exc}; got {_shown(body)}") from exc


def _complaint_of(body: bytes) -> str | None:
    try:
        return _complaint.decode(body).reason
    except (msgspec.MsgspecError, RecursionError):
        return None


def _shown(body: bytes) -> str:
    text = body[: 4 * REASON_CHARS_MAX].decode(errors="replace")
    return " ".join(text.split())[:REASON_CHARS_MAX]
