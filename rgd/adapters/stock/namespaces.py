"""Makes sure, through Pulsar's admin API, that rgd's namespace exists and keeps its topics.

Law: after `ensure_namespace` the namespace exists, its retention is unlimited, so that Pulsar does not
delete the policies topic a minute after its last reader has left, and its topics are compacted. Of
Pulsar's own namespace no setting is changed. Any number of daemons may do this at once, and again at
every start.
`look_at` says what of that is missing, and changes nothing.
How: the REST calls behind `pulsar-admin tenants create`, `namespaces create`, `set-retention` and
`set-compaction-threshold`, each only if needed, so a read-only token suffices
where everything exists already.
Without an admin URL this does nothing, and joining fails with the commands to run
(`rgd.adapters.exchange.pulsar_errors`).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, TypeVar

import aiohttp

from rgd.adapters.exchange.pulsar_errors import namespace_commands
from rgd.ports.exchange import ExchangeDown

#: Longest time of one call; a standalone that has just started is slow to answer.
CALL_TIMEOUT_S: Final = 10.0
#: Pulsar compacts the policies topic after this many bytes: some thousand changes, so that a
#: starting daemon reads little more than the table. An existing threshold is kept.
COMPACTION_THRESHOLD_BYTES: Final = 1 << 20
#: Daemons that start together change the same settings at once; a refused one retries this often.
COLLISION_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
#: Pulsar's own namespace, which is made like ours where it is missing, and whose settings are Pulsar's.
SYSTEM_NAMESPACE: Final = "pulsar/system"
#: Most characters of an admin API's answer in an error.
_REASON_CHARS_MAX: Final = 200

#: Pulsar's values for "for ever" and "unlimited size".
_UNLIMITED: Final = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """What is missing of a namespace, in words; empty: nothing."""

    lacking: tuple[str, ...]
    #: Pulsar's clock, in ms since 1970 to the second; None: it did not say.
    server_ms: int | None


async def ensure_namespace(
    admin_urls: str | Sequence[str],
    namespace: str,
    token: str | None = None,
    trust: ssl.SSLContext | None = None,
) -> None:
    """Create tenant and namespace where missing, and set the namespace's retention to unlimited.

    Args:
        admin_urls: `http://host:8080` or `https://...`, without a path; of several the next one is asked when
            one is unreachable.
        namespace: `tenant/namespace`.
        token: sent as a bearer token.
        trust: the trusted authorities and our certificate; None: the system's authorities, and no certificate.

    Raises:
        ExchangeDown: the admin API cannot be reached or refuses; the message has the commands to run.
    """
    await _at_one_of(admin_urls, namespace, token, trust, _ensure_in_spite_of_others)


async def look_at(
    admin_urls: str | Sequence[str],
    namespace: str,
    token: str | None = None,
    trust: ssl.SSLContext | None = None,
) -> NamespaceState:
    """What `ensure_namespace` would change; the same arguments and errors."""
    return await _at_one_of(admin_urls, namespace, token, trust, _state)


async def _at_one_of(
    admin_urls: str | Sequence[str],
    namespace: str,
    token: str | None,
    trust: ssl.SSLContext | None,
    work: Callable[["_Admin", str], Awaitable[_Result]],
) -> _Result:
    urls = (admin_urls,) if isinstance(admin_urls, str) else admin_urls
    assert urls, "at least one"
    unreachable = []
    for admin_url in urls:
        try:
            async with _session(token, trust) as session:
                return await work(_Admin(session, f"{admin_url.rstrip('/')}/admin/v2"), namespace)
        except _RefusedError as exc:
            tenant = namespace.partition("/")[0]
            raise ExchangeDown(
                f"the admin API at {admin_url}: {exc}; set exchange.admin_token_file to a token of a role that "
                f"administers the tenant (pulsar-admin tenants update {tenant} --admin-roles ROLE), or leave out "
                f"exchange.admin_url and {namespace_commands(namespace)}"
            ) from exc
        except (aiohttp.ClientError, TimeoutError, ValueError) as exc:
            unreachable.append(f"{admin_url} cannot be reached: {str(exc) or type(exc).__name__}")
    raise ExchangeDown(
        f"the admin API at {', '.join(unreachable)}; check exchange.admin_url, "
        "or leave it out if the namespace exists"
    )


def _session(token: str | None, trust: ssl.SSLContext | None) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT_S),
        connector=aiohttp.TCPConnector(ssl=True if trust is None else trust),
    )


class _RefusedError(Exception):
    """The admin API answered with an error."""

    def __init__(self, call: str, status: int, text: str) -> None:
        super().__init__(f"{call} answered {status} {text}")
        #: Of two concurrent changes, Pulsar answers one with 409, or 500 (BadVersion).
        self.may_be_a_collision = status == HTTPStatus.CONFLICT or status >= 500


async def _ensure_in_spite_of_others(admin: "_Admin", namespace: str) -> None:
    for pause_s in COLLISION_PAUSES_S:
        try:
            return await _ensure(admin, namespace)
        except _RefusedError as exc:
            if not exc.may_be_a_collision:
                raise
        await asyncio.sleep(pause_s)
    return await _ensure(admin, namespace)


async def _ensure(admin: "_Admin", namespace: str) -> None:
    async for _, method, path, body in _lacking(admin, namespace):
        await admin.change(method, path, body)


async def _state(admin: "_Admin", namespace: str) -> NamespaceState:
    lacking = [what async for what, _, _, _ in _lacking(admin, namespace)]
    return NamespaceState(tuple(lacking), admin.server_ms)


async def _lacking(admin: "_Admin", namespace: str) -> AsyncIterator[tuple[str, str, str, object]]:
    """What differs, in words, and the change that mends it: method, path, body; the next is asked for after it."""
    tenant = namespace.partition("/")[0]
    if await admin.get(f"tenants/{tenant}") is None:
        clusters = await admin.get("clusters")
        yield f"tenant {tenant}", "PUT", f"tenants/{tenant}", {"allowedClusters": clusters}
    if await admin.get(f"namespaces/{namespace}") is None:
        yield f"namespace {namespace}", "PUT", f"namespaces/{namespace}", {}
    if namespace == SYSTEM_NAMESPACE:
        return
    retention = f"namespaces/{namespace}/retention"
    if await admin.get(retention) != _UNLIMITED:
        yield "unlimited retention", "POST", retention, _UNLIMITED
    threshold = f"namespaces/{namespace}/compactionThreshold"
    if not await admin.get(threshold):
        yield "compaction", "PUT", threshold, COMPACTION_THRESHOLD_BYTES


class _Admin:
    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        #: As `NamespaceState.server_ms`, from the last answer.
        self.server_ms: int | None = None

    async def get(self, path: str) -> Any:
        """The JSON of a resource; None if it does not exist."""
        async with self._session.get(f"{self._base}/{path}") as response:
            if date := response.headers.get("Date"):
                self.server_ms = round(parsedate_to_datetime(date).timestamp() * 1000)
            if response.status == HTTPStatus.NOT_FOUND:
                return None
            if response.status == HTTPStatus.NO_CONTENT:
                return {}
            if response.status != HTTPStatus.OK:
                raise await _refused(f"GET {path}", response)
            return await response.json(content_type=None)

    async def change(self, method: str, path: str, body: object) -> None:
        async with self._session.request(method, f"{self._base}/{path}", json=body) as response:
            if response.status not in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}:
                raise await _refused(f"{method} {path}", response)


async def _refused(call: str, response: aiohttp.ClientResponse) -> _RefusedError:
    text = " ".join((await response.text()).split())
    return _RefusedError(call, response.status, text[:_REASON_CHARS_MAX])
