"""Asks a daemon over HTTP: what the shell commands and the demo speak.

Law: an answer that says "limited" is an answer; everything else that is not a
success is raised with the daemon's own reason.

Not on any hot path of the daemon; a gateway brings its own HTTP client.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from rgd.errors import RgdError

#: Longest that one call may take.
CALL_TIMEOUT_S: Final = 5.0

#: Statuses that are no errors where they come from.
_ANSWERS: Final = frozenset({(429, "/v1/acquire"), (503, "/readyz")})


class DaemonUnreachable(RgdError):
    """Nobody answers at the address."""

    transient = True


class DaemonRefused(RgdError):
    """The daemon answered with an error; the message is its reason."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(f"{status}: {reason}")


class DaemonClient:
    """One daemon; an async context manager.

    Args:
        base: `http://host:port`.
        token: a bearer token, where the daemon wants one.
    """

    def __init__(self, base: str, *, token: str | None = None) -> None:
        self._base = base.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S)
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def acquire(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Ask once; the answer, granted or limited."""
        answer: dict[str, Any] = await self._call("POST", "/v1/acquire", request)
        return answer

    async def acquire_all(self, requests: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Ask many at once; the answers in order."""
        answers: list[dict[str, Any]] = await self._call("POST", "/v1/acquire", requests)
        return answers

    async def group(self, name: str) -> dict[str, Any]:
        """A group with its rows."""
        view: dict[str, Any] = await self._call("GET", f"/v1/groups/{name}")
        return view

    async def put_group(self, name: str, group: Mapping[str, object]) -> None:
        """Create or replace a group."""
        await self._call("PUT", f"/v1/groups/{name}", group)

    async def brokers(self) -> list[dict[str, Any]]:
        """Who is in the exchange."""
        views: list[dict[str, Any]] = await self._call("GET", "/v1/brokers")
        return views

    async def readiness(self) -> dict[str, Any]:
        """What `/readyz` says, ready or not: `ready`, and what is `degraded`."""
        view: dict[str, Any] = await self._call("GET", "/readyz")
        return view

    async def is_ready(self) -> bool:
        """Whether the daemon knows its shares."""
        return bool((await self.readiness()).get("ready"))

    async def _call(self, method: str, path: str, body: object = None) -> Any:
        assert self._session is not None, "use `async with`"
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(method, self._base + path, data=data) as response:
                content = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise DaemonUnreachable(f"no daemon answers at {self._base}: {why}") from error
        decoded = _decode(content)
        if status < 400 or (status, path) in _ANSWERS:
            return decoded
        reason = decoded.get("reason", "") if isinstance(decoded, dict) else ""
        raise DaemonRefused(status, str(reason))


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.DecodeError:
        return None
