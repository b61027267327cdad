"""Makes sure, through Pulsar's admin API, that rgd's namespace exists and keeps its topics.

Law: after `ensure_namespace` the namespace exists. Where it `keeps` a policies topic its retention is unlimited, so
that Pulsar does not delete that topic a minute after its last reader has left, and its topics are compacted. Of
any other namespace, which may be somebody else's, no setting is changed. Any number of daemons may do this at once, and again at
every start.
`look_at` says what of that is missing, and changes nothing.
How: the REST calls behind `pulsar-admin tenants create`, `namespaces create`, `set-retention` and
`set-compaction-threshold`, each only if needed, so a read-only token suffices
where everything exists already.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from rgd.adapters.stock.answers import NAMES
from rgd.adapters.stock.client import Missing, StockClient
from rgd.ports.stock import StockRefused

#: Pulsar compacts the policies topic after this many bytes: some thousand changes, so that a
#: starting daemon reads little more than the table. An existing threshold is kept.
COMPACTION_THRESHOLD_BYTES: Final = 1 << 20
#: Daemons that start together change the same settings at once; a refused one retries this often.
COLLISION_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
#: Pulsar's own namespace, which is made like ours where it is missing, and whose settings are Pulsar's.
SYSTEM_NAMESPACE: Final = "pulsar/system"

#: Pulsar's values for "for ever" and "unlimited size".
_UNLIMITED: Final = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
_ANYTHING: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """What is missing of a namespace, in words; empty: nothing."""

    lacking: tuple[str, ...]
    #: Pulsar's clock, in ms since 1970 to the second; None: it did not say.
    server_ms: int | None


async def ensure_namespace(client: StockClient, namespace: str, *, keeps: bool) -> None:
    """Create tenant and namespace where missing; where it keeps policies, set retention and compaction.

    Raises:
        StockError: the admin API cannot be reached or refuses.
    """
    await client.prepare()
    for pause_s in COLLISION_PAUSES_S:
        try:
            return await _ensure(client, namespace, keeps=keeps)
        except StockRefused as refused:
            # Of two concurrent changes, Pulsar answers one with 409, or 500 (BadVersion).
            status = refused.status or 0
            if status != HTTPStatus.CONFLICT and status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        await asyncio.sleep(pause_s)
    return await _ensure(client, namespace, keeps=keeps)


async def look_at(client: StockClient, namespace: str, *, keeps: bool) -> NamespaceState:
    """What `ensure_namespace` would change; the same errors."""
    await client.prepare()
    lacking = [what async for what, _, _, _ in _lacking(client, namespace, keeps=keeps)]
    date = (await client.head("clusters")).get("Date")
    server_ms = None if date is None else round(parsedate_to_datetime(date).timestamp() * 1000)
    return NamespaceState(tuple(lacking), server_ms)


async def _ensure(client: StockClient, namespace: str, *, keeps: bool) -> None:
    async for _, method, path, body in _lacking(client, namespace, keeps=keeps):
        await client.send(method, path, body)


async def _lacking(
    client: StockClient, namespace: str, *, keeps: bool
) -> AsyncIterator[tuple[str, str, str, object]]:
    """What differs, in words, and the change that mends it: method, path, body; the next is asked for after it."""
    tenant = namespace.partition("/")[0]
    if await _get(client, f"tenants/{tenant}") is None:
        clusters = await client.get("clusters", NAMES)
        yield f"tenant {tenant}", "PUT", f"tenants/{tenant}", {"allowedClusters": clusters}
    if await _get(client, f"namespaces/{namespace}") is None:
        yield f"namespace {namespace}", "PUT", f"namespaces/{namespace}", {}
    if not keeps or namespace == SYSTEM_NAMESPACE:
        return
    retention = f"namespaces/{namespace}/retention"
    if await _get(client, retention) != _UNLIMITED:
        yield "unlimited retention", "POST", retention, _UNLIMITED
    threshold = f"namespaces/{namespace}/compactionThreshold"
    if not await _get(client, threshold):
        yield "compaction", "PUT", threshold, COMPACTION_THRESHOLD_BYTES


async def _get(client: StockClient, path: str) -> Any:
    """What is there, as JSON; None: nothing."""
    try:
        return await client.get(path, _ANYTHING)
    except Missing:
        return None
