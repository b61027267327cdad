"""Reads all policies of a stock Pulsar that rgd uses, part by part.

Law: an unreadable part keeps its known value and is reported as a fault. If a list cannot be
read, all known values of its names stay. After `UNREACHED_MAX` calls without an answer the
poll fails, and nothing changes.

Pulsar has no bulk call: one GET for each resource group and each namespace, four for each selected
topic, one for each of its subscriptions. They run `connections_max` at a time, and each part
is converted when it arrives, so the event loop is never held for long.
`answers` interprets answers; `client` makes the calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

from msgspec.json import Decoder

from rgd.adapters.stock import answers
from rgd.adapters.stock.client import Missing, StockClient
from rgd.core.errors import InvalidName
from rgd.core.policies.model import Group
from rgd.core.policies.names import check_entity, parse_namespace
from rgd.errors import RgdError
from rgd.ports.stock import (
    NOTHING_SET,
    Reading,
    StockDown,
    StockError,
    StockNamespace,
    StockPolicies,
    StockRefused,
    StockTopic,
)

#: Most reported faults of one poll; further unreadable parts also keep their values.
FAULTS_MAX: Final = 100
#: Most calls of one poll without an answer before the poll fails.
UNREACHED_MAX: Final = 20

_Part = TypeVar("_Part")
_Answer = TypeVar("_Answer")


class StockAdmin:
    """Implements `rgd.ports.stock.StockPulsar`.

    Args:
        client: gets one path.
        cluster: the cluster whose rates count if Pulsar does not return its own name.
    """

    def __init__(self, client: StockClient, cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        self._is_cluster_known = False

    async def read(self, known: StockPolicies, topics: Mapping[str, frozenset[str]]) -> Reading:
        """Read all groups, all namespaces, and some topics (`rgd.ports.stock.StockPulsar.read`)."""
        await self._client.prepare()
        await self._learn_cluster()
        poll = _Poll(self._client, self._cluster)
        policies = StockPolicies(
            groups=await poll.groups(known.groups),
            namespaces=await poll.namespaces(known.namespaces),
            topics=await poll.topics(known.topics, topics),
        )
        return Reading(policies, poll.faults)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _learn_cluster(self) -> None:
        """Get the broker's cluster name once, because namespaces have rates for each cluster."""
        if self._is_cluster_known:
            return
        try:
            configuration = await self._client.get(
                "brokers/configuration/runtime", answers.CONFIGURATION
            )
        except StockRefused as refused:
            # Reading this may need more rights than reading policies; then the setting applies.
            if refused.status not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
                raise
            configuration = None
        self._is_cluster_known = True
        if configuration is not None:
            self._cluster = configuration.cluster


class _Poll:
    """One pass over all policies."""

    def __init__(self, client: StockClient, cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        self._unreached = 0
        self._gave_up: StockDown | None = None
        self.faults: dict[str, str] = {}

    async def groups(self, known: Mapping[str, Group]) -> dict[str, Group]:
        """Every resource group."""
        names = await self._names("resourcegroups")

        async def read(name: str) -> Group:
            path = f"resourcegroups/{_quoted(name)}"
            return answers.group_of(name, await self._object(path, answers.RESOURCE_GROUP))

        return await self._each(names, read, known, path="resourcegroups")

    async def namespaces(self, known: Mapping[str, StockNamespace]) -> dict[str, StockNamespace]:
        """Every namespace of every tenant."""

        async def names_of(tenant: str) -> list[str]:
            try:
                return await self._namespaces_of(tenant)
            except Missing:
                raise
            except StockError as error:
                # The known ones may still exist, and each may be readable.
                self._fault(f"namespaces/{tenant}", error)
                return [name for name in known if name.startswith(f"{tenant}/")]

        async def read(name: str) -> StockNamespace:
            path = f"namespaces/{_path_of(parse_namespace(name))}"
            answer = await self._object(path, answers.NAMESPACE)
            return answers.namespace_of(answer, self._cluster)

        lists = await self._each(await self._names("tenants"), names_of, {}, path="tenants")
        names = [name for names in lists.values() for name in names]
        return await self._each(names, read, known, path="namespaces")

    async def topics(
        self, known: Mapping[str, StockTopic], wanted: Mapping[str, frozenset[str]]
    ) -> dict[str, StockTopic]:
        """The selected topics, without those that set nothing; the others with their known values."""

        async def read(name: str) -> StockTopic:
            before = known.get(name, NOTHING_SET)
            return await self._topic(name, wanted[name].union(before.by_subscription))

        found = await self._each(list(wanted), read, known, path="topics")
        others = {name: topic for name, topic in known.items() if name not in wanted}
        return others | {name: topic for name, topic in found.items() if topic != NOTHING_SET}

    async def _namespaces_of(self, tenant: str) -> list[str]:
        path = f"namespaces/{check_entity(tenant, 'tenant')}"
        names = await self._object(path, answers.NAMES)
        for name in names:
            if not name.startswith(f"{tenant}/"):
                raise StockRefused(f"{path}: it names {name!r} of another tenant")
        return names

    async def _topic(self, name: str, subscriptions: Iterable[str]) -> StockTopic:
        domain, _, rest = name.partition("://")
        base = f"{domain}/{_path_of(rest)}"

        async def get(what: str, decoder: Decoder[_Answer]) -> _Answer | None:
            return await self._client.get(f"{base}/{what}", decoder)

        publish = await get("publishRate", answers.PUBLISH_RATE)
        own = {
            subscription: await get(f"{_quoted(subscription)}/dispatchRate", answers.DISPATCH_RATE)
            for subscription in sorted(subscriptions)
        }
        return answers.topic_of(
            publish,
            await get("dispatchRate", answers.DISPATCH_RATE),
            each_subscription=await get("subscriptionDispatchRate", answers.DISPATCH_RATE),
            by_subscription={name: rate for name, rate in own.items() if rate is not None},
            backlogs=await get("backlogQuotaMap", answers.QUOTAS),
        )

    async def _object(self, path: str, decoder: Decoder[_Answer]) -> _Answer:
        """The object at a path; null is no valid answer."""
        answer = await self._client.get(path, decoder)
        if answer is None:
            raise StockRefused(f"{path}: expected an answer, got nothing")
        return answer

    async def _names(self, path: str) -> list[str]:
        """A list without which the poll fails."""
        try:
            return await self._object(path, answers.NAMES)
        except Missing as exc:
            raise StockRefused(f"{exc}; is this Pulsar's admin API?") from exc

    async def _each(
        self,
        names: Sequence[str],
        read: Callable[[str], Awaitable[_Part]],
        known: Mapping[str, _Part],
        *,
        path: str,
    ) -> dict[str, _Part]:
        """Read a part for each name; an unchanged part stays the same object."""
        found: dict[str, _Part] = {}
        pending = iter(dict.fromkeys(names))

        async def work() -> None:
            for name in pending:
                if self._gave_up is not None:
                    return
                before = known.get(name)
                try:
                    part = await read(name)
                except Missing:
                    continue
                except (StockError, InvalidName) as error:
                    self._fault(f"{path}/{name}", error)
                    if before is not None:
                        found[name] = before
                else:
                    found[name] = part if before is None or part != before else before

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(self._client.settings.connections_max, len(names))):
                tasks.create_task(work())
        if self._gave_up is not None:
            raise self._gave_up
        return found

    def _fault(self, what: str, error: RgdError) -> None:
        if len(self.faults) < FAULTS_MAX:
            self.faults[what] = str(error)
        if isinstance(error, StockDown):
            self._unreached += 1
            if self._unreached == UNREACHED_MAX:
                self._gave_up = StockDown(
                    f"{self._unreached} calls without an answer, the last: {error}"
                )


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _path_of(full: str) -> str:
    """`tenant/namespace/topic` as a path: slashes within the topic are part of its name."""
    return "/".join(_quoted(part) for part in full.split("/", 2))
