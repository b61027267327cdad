"""Reads all policies of a stock Pulsar that rgd uses, part by part.

Law: an unreadable part keeps its known value and is reported as a fault (`parts`). If a list cannot be
read, all known values of its names stay. If a poll fails, nothing changes.

Pulsar has no bulk call: one GET for the brokers' limit, one for each resource group and each namespace, four for each selected
topic, one for each of its subscriptions. They run some at a time, and each part
is converted when it arrives, so the event loop is never held for long.
`answers` interprets answers; `client` makes the calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from msgspec.json import Decoder

from rgd.adapters.stock import answers
from rgd.adapters.stock.client import Missing, StockClient
from rgd.adapters.stock.parts import PartReads
from rgd.adapters.stock.paths import path_of, path_of_topic, quoted
from rgd.core.errors import InvalidName
from rgd.core.policies.model import NOT_SET, Group, LocalLimit
from rgd.core.policies.names import check_entity, parse_namespace
from rgd.ports.stock import (
    NOTHING_SET,
    Reading,
    StockError,
    StockNamespace,
    StockPolicies,
    StockRefused,
    StockTopic,
)

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
        #: The reads of this poll.
        self._parts = PartReads()

    async def read(self, known: StockPolicies, topics: Mapping[str, frozenset[str]]) -> Reading:
        """Read all groups, all namespaces, and some topics (`rgd.ports.stock.StockPulsar.read`)."""
        await self._client.prepare()
        await self._learn_cluster()
        self._parts = PartReads()
        policies = StockPolicies(
            groups=await self._groups(known.groups),
            namespaces=await self._namespaces(known.namespaces),
            topics=await self._topics(known.topics, topics),
            broker=await self._broker(known.broker),
        )
        return Reading(policies, self._parts.faults)

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

    async def _groups(self, known: Mapping[str, Group]) -> dict[str, Group]:
        """Every resource group."""
        names = await self._names("resourcegroups")

        async def read(name: str) -> Group:
            path = f"resourcegroups/{quoted(name)}"
            return answers.group_of(name, await self._client.require(path, answers.RESOURCE_GROUP))

        return await self._parts.each(names, read, known, path="resourcegroups")

    async def _broker(self, known: LocalLimit) -> LocalLimit:
        """The limit of each broker."""
        path = "brokers/configuration/values"
        try:
            return answers.broker_of(
                await self._client.require(path, answers.DYNAMIC_CONFIGURATION)
            )
        except Missing:
            return NOT_SET
        except StockError as error:
            self._parts.fault(path, error)
            return known

    async def _namespaces(self, known: Mapping[str, StockNamespace]) -> dict[str, StockNamespace]:
        """Every namespace of every tenant."""

        async def names_of(tenant: str) -> list[str]:
            try:
                return await self._namespaces_of(tenant)
            except Missing:
                raise
            except StockError as error:
                # The known ones may still exist, and each may be readable.
                self._parts.fault(f"namespaces/{tenant}", error)
                return [name for name in known if name.startswith(f"{tenant}/")]

        async def read(name: str) -> StockNamespace:
            path = f"namespaces/{path_of(parse_namespace(name))}"
            answer = await self._client.require(path, answers.NAMESPACE)
            found = answers.namespace_of(answer, self._cluster)
            try:
                if found.group is not None:
                    check_entity(found.group, "group")
            except InvalidName as error:
                # Its limits have nothing to do with it.
                self._parts.fault(f"namespaces/{name}", error)
                return replace(found, group=known.get(name, StockNamespace()).group)
            return found

        lists = await self._parts.each(await self._names("tenants"), names_of, {}, path="tenants")
        names = [name for names in lists.values() for name in names]
        return await self._parts.each(names, read, known, path="namespaces")

    async def _topics(
        self, known: Mapping[str, StockTopic], wanted: Mapping[str, frozenset[str]]
    ) -> dict[str, StockTopic]:
        """The selected topics, without those that set nothing; the others with their known values."""

        async def read(name: str) -> StockTopic:
            before = known.get(name, NOTHING_SET)
            return await self._topic(name, wanted[name].union(before.by_subscription))

        found = await self._parts.each(list(wanted), read, known, path="topics")
        others = {name: topic for name, topic in known.items() if name not in wanted}
        return others | {name: topic for name, topic in found.items() if topic != NOTHING_SET}

    async def _namespaces_of(self, tenant: str) -> list[str]:
        path = f"namespaces/{check_entity(tenant, 'tenant')}"
        names = await self._client.require(path, answers.NAMES)
        for name in names:
            if not name.startswith(f"{tenant}/"):
                raise StockRefused(f"{path}: it names {name!r} of another tenant")
        return names

    async def _topic(self, name: str, subscriptions: Iterable[str]) -> StockTopic:
        base = path_of_topic(name)

        async def get(what: str, decoder: Decoder[_Answer]) -> _Answer | None:
            return await self._client.get(f"{base}/{what}", decoder)

        publish = await get("publishRate", answers.PUBLISH_RATE)
        own = {
            subscription: await get(f"{quoted(subscription)}/dispatchRate", answers.DISPATCH_RATE)
            for subscription in sorted(subscriptions)
        }
        return answers.topic_of(
            publish,
            await get("dispatchRate", answers.DISPATCH_RATE),
            each_subscription=await get("subscriptionDispatchRate", answers.DISPATCH_RATE),
            by_subscription={name: rate for name, rate in own.items() if rate is not None},
            backlogs=await get("backlogQuotaMap", answers.QUOTAS),
        )

    async def _names(self, path: str) -> list[str]:
        """A list without which the poll fails."""
        try:
            return await self._client.require(path, answers.NAMES)
        except Missing as exc:
            raise StockRefused(f"{exc}; is this Pulsar's admin API?") from exc
