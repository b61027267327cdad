"""Asks a daemon over HTTP: what the shell commands and the demo speak.

Laws: an answer that says "limited" is an answer; everything else that is not a
success is raised with the daemon's own reason. A token is sent and never shown.

Not on any hot path of the daemon; a gateway brings its own HTTP client.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from rgd.core.policies.names import namespace_of_topic
from rgd.errors import RgdError
from rgd.text import without_credentials

#: Longest that one call may take.
CALL_TIMEOUT_S: Final = 5.0

#: A watched daemon that sends no snapshot for so many rounds is taken for gone.
SILENT_ROUNDS: Final = 3

#: Largest snapshot, in bytes.
SNAPSHOT_BYTES_MAX: Final = 1 << 20

#: Entries of a page that is asked for.
PAGE_LIMIT: Final = 200

#: Statuses that are no errors where they come from.
_ANSWERS: Final = frozenset({(429, "/v1/acquire"), (503, "/readyz")})

#: Begins an address that is a unix socket's path: `unix:///run/rgd.sock`.
UNIX: Final = "unix://"


_Answer = TypeVar("_Answer", bound=Container[object])


class DaemonUnreachable(RgdError):
    """Nobody answers at the address."""

    transient = True


class DaemonRefused(RgdError):
    """The daemon answered with an error; the message is its reason."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status}: {reason}")


class DaemonClient:
    """One daemon; an async context manager.

    Args:
        base: `http://host:port`, or `unix:///path` of its unix socket.
        token: a bearer token, where the daemon wants one.
        tls: whom to trust and what to show; None: as the system does.
    """

    def __init__(
        self, base: str, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._told = without_credentials(base := base.rstrip("/"))
        self._unix_socket = base.removeprefix(UNIX) if base.startswith(UNIX) else None
        #: Nobody resolves the host of a unix socket, but HTTP wants one.
        self._base = "http://localhost" if self._unix_socket else base
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S)
        connector: aiohttp.BaseConnector
        if self._unix_socket:
            connector = aiohttp.UnixConnector(self._unix_socket)
        else:
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=timeout,
            connector=connector,
            # A snapshot of the live view is one line.
            read_bufsize=SNAPSHOT_BYTES_MAX,
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def acquire(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Ask once; the answer, granted or limited."""
        return await self._object("POST", "/v1/acquire", request, having="granted")

    async def acquire_all(self, requests: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Ask many at once; the answers in order."""
        answers: list[dict[str, Any]] = await self._call("POST", "/v1/acquire", requests)
        return answers

    async def group(self, name: str) -> dict[str, Any]:
        """A group with its rows."""
        return await self._object("GET", f"/v1/groups/{_part(name)}", having="group")

    async def put_group(self, name: str, group: Mapping[str, object]) -> None:
        """Create or replace a group."""
        await self._call("PUT", f"/v1/groups/{_part(name)}", group)

    async def groups(self) -> list[dict[str, Any]]:
        """Every group with its rows, by name; page after page."""
        return await self._pages("/v1/groups")

    async def patch_group(self, name: str, patch: Mapping[str, object]) -> dict[str, Any]:
        """Change what the patch says of a group, or make it; the group as it is now."""
        return await self._object("PATCH", f"/v1/groups/{_part(name)}", patch, having="group")

    async def delete_group(self, name: str) -> None:
        """Delete a group that nothing is attached to."""
        await self._call("DELETE", f"/v1/groups/{_part(name)}")

    async def attach(self, name: str, group: str) -> None:
        """Put a tenant, a full namespace or a full topic into a group."""
        await self._call("POST", f"{attachment_path(name)}/{_part(group)}")

    async def detach(self, name: str) -> None:
        """Take a tenant, a full namespace or a full topic out of its group."""
        await self._call("DELETE", attachment_path(name))

    async def explain(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Why a name is limited: `GET /v1/explain` with these parameters."""
        asked = "&".join(f"{key}={_part(value)}" for key, value in query.items())
        return await self._object("GET", f"/v1/explain?{asked}", having="levels")

    async def live(self) -> dict[str, Any]:
        """The newest snapshot of the live view."""
        return await self._object("GET", "/v1/live", having="round_s")

    async def watch(self) -> AsyncGenerator[dict[str, Any]]:
        """A snapshot each round, until the daemon ends the stream.

        Raises:
            DaemonUnreachable: the daemon is gone, or silent for longer than a snapshot should take.
        """
        assert self._session is not None, "use `async with`"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CALL_TIMEOUT_S)
        headers = {"Accept": "text/event-stream"}
        wait_s = CALL_TIMEOUT_S
        with self._reached():
            async with self._session.get(
                f"{self._base}/v1/live", headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    self._result(response.status, "/v1/live", await response.read())
                while True:
                    async with asyncio.timeout(wait_s):
                        message = await response.content.readuntil(b"\n\n")
                    if not message:
                        return
                    decoded = _decode(message.partition(b"data: ")[2])
                    view = self._checked(decoded, dict, "/v1/live", having="round_s")
                    wait_s = max(CALL_TIMEOUT_S, SILENT_ROUNDS * view["round_s"])
                    yield view

    async def brokers(self) -> list[dict[str, Any]]:
        """Who is in the exchange, by name; page after page."""
        return await self._pages("/v1/brokers")

    async def log_cursors(self) -> list[dict[str, Any]]:
        """How far the readers of the usage log have come."""
        return self._checked(await self._call("GET", "/v1/log/cursors"), list, "/v1/log/cursors")

    async def acknowledge(self, name: str, index: int) -> None:
        """Keep a reader's position."""
        await self._call("PUT", f"/v1/log/cursors/{_part(name)}", {"index": index})

    async def forget_cursor(self, name: str) -> None:
        """Keep it no longer."""
        await self._call("DELETE", f"/v1/log/cursors/{_part(name)}")

    async def health(self) -> None:
        """Have the daemon say that it is alive."""
        await self._object("GET", "/healthz", having="alive")

    async def readiness(self) -> dict[str, Any]:
        """What `/readyz` says, ready or not: `ready`, and what is `degraded`."""
        return await self._object("GET", "/readyz", having="ready")

    async def is_ready(self) -> bool:
        """Whether the daemon knows its shares."""
        return bool((await self.readiness())["ready"])

    async def _pages(self, path: str) -> list[dict[str, Any]]:
        """All entries of a list; each page says where the next one is."""
        views: list[dict[str, Any]] = []
        following: str | None = f"{path}?limit={PAGE_LIMIT}"
        while following is not None:
            page, links = await self._ask("GET", following)
            views += self._checked(page, list, path)
            following = None if "next" not in links else str(links["next"]["url"].relative())
        return views

    async def _call(self, method: str, path: str, body: object = None) -> Any:
        return (await self._ask(method, path, body))[0]

    async def _object(
        self, method: str, path: str, body: object = None, *, having: str
    ) -> dict[str, Any]:
        return self._checked(await self._call(method, path, body), dict, path, having=having)

    def _checked(
        self, answer: object, kind: type[_Answer], path: str, *, having: str | None = None
    ) -> _Answer:
        """What a daemon can answer, with the key that every such answer has; anything else is of another server."""
        if not isinstance(answer, kind) or (having is not None and having not in answer):
            raise DaemonUnreachable(
                f"no daemon answers at {self._told}: {path} is not one's answer"
            )
        return answer

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[Any, Any]:
        """The answer and its links."""
        assert self._session is not None, "use `async with`"
        data = None if body is None else msgspec.json.encode(body)
        with self._reached():
            async with self._session.request(method, self._base + path, data=data) as response:
                content = await response.read()
                status, links = response.status, response.links
        return self._result(status, path, content), links

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            # A ValueError is an address that is none.
            raise DaemonUnreachable(f"no daemon answers at {self._told}: {_why(error)}") from error

    @staticmethod
    def _result(status: int, path: str, content: bytes) -> Any:
        decoded = _decode(content)
        if status < 400 or (status, path) in _ANSWERS:
            return decoded
        reason = decoded.get("reason", "") if isinstance(decoded, dict) else ""
        raise DaemonRefused(status, str(reason))


def attachment_path(name: str) -> str:
    """Where `/admin/v2` says which group a name is in.

    Args:
        name: a tenant, a full namespace, or a full topic (`persistent://tenant/namespace/topic`).
    """
    if "://" not in name:
        what = "namespaces" if "/" in name else "tenants"
        return f"/admin/v2/{what}/{name}/resourcegroup"
    domain, _, rest = name.partition("://")
    namespace = namespace_of_topic(name)
    topic = rest.removeprefix(f"{namespace}/")
    return f"/admin/v2/{domain}/{namespace}/{_part(topic)}/resourcegroup"


def _why(error: Exception) -> str:
    """What the operating system says, where it is that; aiohttp says it with much around it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        if number > 0 and not isinstance(error.os_error, ssl.SSLError | ssl.CertificateError):
            return os.strerror(number)
    return without_credentials(str(error)) or type(error).__name__


def _part(name: str) -> str:
    """A name as one part of a path or a query."""
    return quote(name, safe="")


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content else None
    except (ValueError, RecursionError):
        return None
