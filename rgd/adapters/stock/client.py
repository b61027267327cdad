"""Client of Pulsar's admin API: one GET at a time for a path, every answer bounded in time and size.

Law: an answer is Pulsar's JSON, Pulsar's own "not found", or an error. A proxy's answer
(HTML, a 404 of its own) is never treated as Pulsar's.

Redirects are followed here, because Pulsar redirects a caller to the broker that owns a topic. The token
is sent along as with Pulsar's own client, but never from https to http. Tokens are read from their
file again for every poll, so a rotated one needs no restart.
"""

import asyncio
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from rgd.config.plain_files import TOKEN_BYTES_MAX, read_plain_file
from rgd.ports.stock import StockDown, StockError, StockRefused

#: Largest answer that is read: a list of some 100,000 names.
BODY_BYTES_MAX: Final = 16 << 20
#: Most redirects of one call; Pulsar needs one.
REDIRECTS_MAX: Final = 5
#: Most characters of an admin API's answer in an error.
REASON_CHARS_MAX: Final = 200

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
#: Statuses of Pulsar's own "not found"; 405 is a broker whose topic policies are disabled.
_NOTHING_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})

_Answer = TypeVar("_Answer")


class Missing(StockError):
    """Pulsar itself reports that the resource does not exist."""


@dataclass(frozen=True, slots=True)
class StockSettings:
    """The admin API's address, and the limits of its use."""

    #: `http://host:8080` or `https://...`, without a path.
    url: str
    #: A file with a bearer token.
    token_file: Path | None = None
    #: Certificates to trust, PEM; None: the system's.
    ca_file: Path | None = None
    #: Most concurrent calls. Their answers may all arrive in one turn of the event loop, and each delays
    #: requests by half a millisecond.
    connections_max: int = 4
    #: Longest time of one call.
    call_timeout_s: float = 10.0


class _Complaint(msgspec.Struct):
    """Pulsar's ErrorData."""

    reason: str


_complaint: Final = msgspec.json.Decoder(_Complaint)


class StockClient:
    """One admin API. Must be made and used on one event loop."""

    def __init__(self, settings: StockSettings) -> None:
        self.settings = settings
        self._base = f"{settings.url.rstrip('/')}/admin/v2/"
        self._session: aiohttp.ClientSession | None = None
        self._headers: dict[str, str] = {}

    async def prepare(self) -> None:
        """Read the token, and open a connection for the next calls.

        Raises:
            StockRefused: the token or the certificates cannot be read.
        """
        try:
            self._headers = await asyncio.to_thread(_headers, self.settings.token_file)
            if self._session is None:
                trust = await asyncio.to_thread(_trust, self.settings.ca_file)
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=trust, limit=self.settings.connections_max),
                    timeout=aiohttp.ClientTimeout(total=self.settings.call_timeout_s),
                )
        except (OSError, ValueError) as exc:
            raise StockRefused(f"token or certificates for Pulsar's admin API: {exc}") from exc

    async def get(self, path: str, decoder: msgspec.json.Decoder[_Answer]) -> _Answer | None:
        """Get a path below `/admin/v2/` (its parts quoted); None is Pulsar's null: not set.

        Raises:
            Missing: Pulsar reports that it does not exist.
            StockDown: no answer came.
            StockRefused: the answer is unusable.
        """
        try:
            status, body = await self._ask(path)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            why = str(exc) or type(exc).__name__
            raise StockDown(f"{path}: {why}") from exc
        except ValueError as exc:
            # aiohttp's error for an invalid URL.
            raise StockRefused(f"{path}: {exc}") from exc
        if status == HTTPStatus.NO_CONTENT:
            return None
        if status == HTTPStatus.OK:
            return _decoded(path, body, decoder)
        complaint = _complaint_of(body)
        shown = _shown(body) if complaint is None else complaint[:REASON_CHARS_MAX]
        text = f"{path} answered {status} {shown}".rstrip()
        if status in _NOTHING_THERE and complaint is not None:
            raise Missing(text)
        raise StockRefused(text, status)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, path: str) -> tuple[int, bytes]:
        assert self._session is not None, "prepare() comes first"
        url = self._base + path
        for _ in range(REDIRECTS_MAX + 1):
            async with self._session.get(
                url, headers=self._headers, allow_redirects=False
            ) as response:
                if response.status not in _REDIRECTS:
                    return response.status, await _bounded(path, response)
                url = _next_url(path, url, response.headers.get("Location", ""))
        raise StockRefused(f"{path}: more than {REDIRECTS_MAX} redirects")


def _headers(token_file: Path | None) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if token_file is not None:
        token = read_plain_file(token_file, TOKEN_BYTES_MAX).decode().strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError(f"{token_file}: expected one line with a token")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    return True if ca_file is None else ssl.create_default_context(cafile=str(ca_file))


async def _bounded(path: str, response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            # An unread rest would be read as the next answer.
            response.close()
            raise StockRefused(f"{path}: the answer is larger than {BODY_BYTES_MAX} bytes")
    return bytes(body)


def _next_url(path: str, url: str, location: str) -> str:
    target = urljoin(url, location)
    scheme = urlsplit(target).scheme
    if not location or scheme not in {"http", "https"}:
        raise StockRefused(f"{path}: redirected to nowhere ({_shown(location.encode())})")
    if urlsplit(url).scheme == "https" and scheme == "http":
        raise StockRefused(f"{path}: redirected from https to http")
    return target


def _decoded(path: str, body: bytes, decoder: msgspec.json.Decoder[_Answer]) -> _Answer | None:
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
    return " ".join(body[: 4 * REASON_CHARS_MAX].decode(errors="replace").split())[
        :REASON_CHARS_MAX
    ]
