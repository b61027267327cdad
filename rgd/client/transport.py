"""Carries the calls of a client over HTTP: TCP, TLS or a unix socket, connections kept.

Law: a token is sent and never shown. A call ends within `timeout_s`, with `NOTHING` whatever went wrong. No answer
takes more memory than `ANSWER_BYTES_MAX`: compressed ones are not asked for, and not opened.
A token file is read again when the daemon refuses the token, so that tokens can be changed under a running client.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Final, Self

import aiohttp

from rgd.client.errors import BadSetting
from rgd.client.settings import UNIX, ClientSettings

#: Longest token file that is read, in bytes.
TOKEN_BYTES_MAX: Final = 64 << 10

#: Longest answer in bytes; an array of 1,000 refusals with the longest names of groups has less.
ANSWER_BYTES_MAX: Final = 16 << 20

#: Connections beside those of questions and leases: what goes back, and probes.
_CONNECTIONS_BESIDE: Final = 2


#: No answer came, as status and body.
NOTHING: Final = (0, b"")


class Transport:
    """The connections to one daemon; an async context manager."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        url = settings.url.rstrip("/")
        self._unix_socket = url.removeprefix(UNIX) if url.startswith(UNIX) else None
        #: Nobody resolves the host of a unix socket, but HTTP wants one.
        self._base = "http://localhost" if self._unix_socket else url
        self._tls = _tls(settings)
        self._token = _token(settings)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        limit = 2 * self._settings.calls_max + _CONNECTIONS_BESIDE
        if self._unix_socket is not None:
            connector: aiohttp.BaseConnector = aiohttp.UnixConnector(self._unix_socket, limit=limit)
        else:
            connector = aiohttp.TCPConnector(limit=limit, ssl=self._tls or True)
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, path: str, body: bytes) -> tuple[int, bytes]:
        """POST: the status and the body of its answer."""
        sent = self._token
        status, answer = await self._call(path, body)
        if status == 401 and self._has_other_token(sent):
            status, answer = await self._call(path, body)
        return status, answer

    async def _call(self, path: str, body: bytes) -> tuple[int, bytes]:
        assert self._session is not None, "use `async with`"
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            async with self._session.post(
                self._base + path, data=body, headers=headers, allow_redirects=False
            ) as response:
                try:
                    await response.content.readexactly(ANSWER_BYTES_MAX + 1)
                except asyncio.IncompleteReadError as whole:
                    return response.status, whole.partial
                return NOTHING  # whoever sends so much is no daemon
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError):
            # A TimeoutError is an OSError; a ValueError is an address that is none; a RuntimeError is a process without
            # a thread to spare, or one that ends, which looks no host name up.
            return NOTHING

    def _has_other_token(self, sent: str | None) -> bool:
        """Read the token again; whether it is another one than was sent: another call may have read it meanwhile."""
        # While it is being replaced the daemon's refusal stands.
        with contextlib.suppress(BadSetting):
            self._token = _token(self._settings)
        return self._token != sent


def _token(settings: ClientSettings) -> str | None:
    if settings.token_file is None:
        return settings.token
    try:
        with Path(settings.token_file).open(encoding="ascii") as file:
            token = file.read(TOKEN_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadSetting(
            f"token_file: expected a readable file that holds a token: {why}"
        ) from error
    if not token or len(token.split()) > 1:
        raise BadSetting("token_file: expected one token and nothing else")
    return token


def _tls(settings: ClientSettings) -> ssl.SSLContext | None:
    """None: TLS, where the address says https, as the system trusts."""
    if settings.tls_ca is None and settings.tls_cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca)
        if settings.tls_cert is not None:
            context.load_cert_chain(settings.tls_cert, settings.tls_key, password="")
    except OSError as error:
        # An SSLError, which says what is wrong with the file, is an OSError too.
        raise BadSetting(
            f"tls_ca, tls_cert, tls_key: expected readable PEM files: {error}"
        ) from error
    return context
