"""The calls under `/admin/v2`: a part of the one list of `rgd.adapters.http.routes`.

Paths and codes are Pulsar's. Topics come twice, `persistent` and `non-persistent`. Where two paths
match, the first here answers: a subscription that is called `resourcegroup` keeps Pulsar's own path.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import AnyOf, Endpoint, Query, ResponseSpec
from rgd.adapters.http.paging import WHOLE_QUERY
from rgd.adapters.http.pulsar_admin import attachments, backlog_quotas, rates
from rgd.adapters.http.pulsar_admin.attachments import AttachmentCalls, AttachmentPlace
from rgd.adapters.http.pulsar_admin.backlog_quotas import TYPE, BacklogCalls
from rgd.adapters.http.pulsar_admin.bodies import (
    BacklogQuotaBody,
    BacklogQuotaMap,
    DispatchRate,
    DispatchRateBody,
    NamespacePolicies,
    PublishRate,
    PublishRateBody,
    ResourceGroup,
    ResourceGroupBody,
)
from rgd.adapters.http.pulsar_admin.dynamic_config import DynamicConfigCalls
from rgd.adapters.http.pulsar_admin.namespaces import NamespaceCalls
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH
from rgd.adapters.http.pulsar_admin.rates import RateCalls
from rgd.adapters.http.pulsar_admin.resource_groups import ResourceGroupCalls
from rgd.adapters.http.pulsar_admin.topic_stats import (
    BacklogCheckCall,
    PartitionedStatsAnswer,
    TopicStatsAnswer,
    TopicStatsCalls,
)
from rgd.adapters.http.reply import NO_CONTENT, Handler
from rgd.adapters.http.usual import BAD_BODY, BAD_PAGE, DONE, IN_USE, NO_GROUP, NOT_NOW
from rgd.core.policies.model import BacklogType
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope

_ROOT: Final = "/admin/v2"
_TENANT: Final = f"{_ROOT}/tenants/{{tenant}}"
_NAMESPACE: Final = f"{_ROOT}/namespaces/{{tenant}}/{{namespace}}"
_DOMAINS: Final = ("persistent", "non-persistent")

_BOOLEAN: Final[Mapping[str, Any]] = MappingProxyType({"type": "boolean"})
_APPLIED: Final = Query("applied", "What is in force there, wherever it was set.", _BOOLEAN)
#: Pulsar's clients send these; there is one cluster and every daemon answers for itself.
_TOLERATED: Final = (
    Query("isGlobal", "Ignored.", _BOOLEAN),
    Query("authoritative", "Ignored.", _BOOLEAN),
)
_PER_PARTITION: Final = Query("perPartition", "Whether each partition is shown too.", _BOOLEAN)
_TYPE: Final = Query(
    TYPE,
    f"Which quota; {BacklogType.SIZE} if it is not said.",
    MappingProxyType({"type": "string", "enum": list(BacklogType)}),
)

_NAMES: Final = {200: ResponseSpec("Names.", list[str], headers_if_any=("Link",)), **BAD_PAGE}
_BAD_NAME: Final = {412: ResponseSpec("A name in the path is malformed.", Reason)}
_BAD_GROUP: Final = {412: ResponseSpec("A name is malformed, or there is no such group.", Reason)}
_MISSING: Final = {404: ResponseSpec("Nobody ever named the tenant or namespace.", Reason)}
_BAD_TYPE: Final = {404: ResponseSpec("There is no such type of quota.", Reason)}
_MISSING_OR_TYPE: Final = {
    404: ResponseSpec("Nobody ever named the namespace, or there is no such type of quota.", Reason)
}


@dataclass(frozen=True, slots=True)
class PulsarAdmin:
    """Who answers under `/admin/v2`."""

    daemon: Daemon
    #: Held while groups are deleted or attached to.
    writing: asyncio.Lock


def endpoints(admin: PulsarAdmin) -> Iterator[Endpoint]:
    """Every call under `/admin/v2`."""
    yield from _resource_groups(ResourceGroupCalls(admin.daemon, admin.writing))
    yield from _namespaces(NamespaceCalls(admin.daemon))
    yield from _dynamic_config(DynamicConfigCalls(admin.daemon))
    yield from _attachments(admin, _Place("a tenant", _TENANT), attachments.TENANTS)
    yield from _of_namespaces(admin)
    yield _backlog_check(BacklogCheckCall(admin.daemon.backlogs))
    for domain in _DOMAINS:
        yield from _of_topics(admin, domain)


class _Place(NamedTuple):
    """Where policies are set: for people, and as a path."""

    what: str
    path: str
    #: What any of its calls may be asked with.
    query: tuple[Query, ...] = ()


def _of_namespaces(admin: PulsarAdmin) -> Iterator[Endpoint]:
    place, daemon = _Place("a namespace", _NAMESPACE), admin.daemon
    yield from _attachments(admin, place, attachments.NAMESPACES)
    yield from _dispatch(place, "dispatchRate", RateCalls(daemon, rates.NAMESPACE, DISPATCH))
    of_subscriptions = RateCalls(daemon, rates.NAMESPACE_SUBSCRIPTIONS, DISPATCH)
    yield from _dispatch(place, "subscriptionDispatchRate", of_subscriptions)
    yield from _publish(place, RateCalls(daemon, rates.NAMESPACE, PUBLISH), absent=200)
    yield from _backlog(place, BacklogCalls(daemon, backlog_quotas.NAMESPACE))


def _of_topics(admin: PulsarAdmin, domain: str) -> Iterator[Endpoint]:
    path = f"{_ROOT}/{domain}/{{tenant}}/{{namespace}}/{{topic}}"
    place = _Place(f"a {domain} topic", path, _TOLERATED)
    one = _Place(f"one subscription of a {domain} topic", f"{path}/{{subscription}}", _TOLERATED)
    daemon = admin.daemon
    yield from _dispatch(
        one, "dispatchRate", RateCalls(daemon, rates.subscription(domain), DISPATCH)
    )
    yield from _dispatch(place, "dispatchRate", RateCalls(daemon, rates.topic(domain), DISPATCH))
    of_subscriptions = RateCalls(daemon, rates.topic_subscriptions(domain), DISPATCH)
    yield from _dispatch(place, "subscriptionDispatchRate", of_subscriptions)
    publish = RateCalls(daemon, rates.topic(domain), PUBLISH, absent=NO_CONTENT)
    yield from _publish(place, publish, absent=204)
    yield from _backlog(place, BacklogCalls(daemon, backlog_quotas.topic(domain)))
    yield from _attachments(admin, place, attachments.topics(domain))
    yield from _stats(place, TopicStatsCalls(daemon, domain))


def _resource_groups(calls: ResourceGroupCalls) -> Iterator[Endpoint]:
    groups, group = f"{_ROOT}/resourcegroups", f"{_ROOT}/resourcegroups/{{group}}"
    about = "The names of all groups, or a page of them"
    yield _get(groups, calls.list, about, _NAMES, WHOLE_QUERY)
    shown = {200: ResponseSpec("The rates; -1 is unlimited.", ResourceGroup), **NO_GROUP}
    yield _get(group, calls.get, "A group's four rates", shown)
    yield Endpoint(
        method="PUT",
        path=group,
        scope=Scope.ADMIN,
        handler=calls.put,
        summary="Create a group, or change the rates that the body says (as Pulsar).",
        body=ResourceGroupBody,
        answers={**DONE, **BAD_BODY, **NOT_NOW},
    )
    deleted = {**DONE, **NO_GROUP, **NOT_NOW, **IN_USE}
    about = "Delete a group that nothing is attached to (as Pulsar)"
    yield _delete(group, calls.delete, about, answers=deleted)


def _namespaces(calls: NamespaceCalls) -> Iterator[Endpoint]:
    names = {200: ResponseSpec("Names.", list[str])}
    yield _get(f"{_ROOT}/clusters", calls.clusters, "The cluster of this daemon", names)
    yield _get(
        f"{_ROOT}/brokers/configuration/runtime",
        calls.runtime_configuration,
        "The cluster's name and the broker's dispatch limit, of all of Pulsar's settings",
        {200: ResponseSpec("The settings.", dict[str, str])},
    )
    about = "Every tenant of which anything is named, or a page of them"
    yield _get(f"{_ROOT}/tenants", calls.tenants, about, _NAMES, WHOLE_QUERY)
    path = f"{_ROOT}/namespaces/{{tenant}}"
    told = {**_NAMES, **_MISSING, **_BAD_NAME}
    about = "A tenant's namespaces, full names, or a page of them"
    yield _get(path, calls.list, about, told, WHOLE_QUERY)
    policies = {200: ResponseSpec("Its policies.", NamespacePolicies), **_MISSING, **_BAD_NAME}
    yield _get(_NAMESPACE, calls.policies, "What is set for a namespace", policies)


def _dynamic_config(calls: DynamicConfigCalls) -> Iterator[Endpoint]:
    path = f"{_ROOT}/brokers/configuration"
    names = {200: ResponseSpec("Names.", list[str])}
    yield _get(path, calls.names, "Settings of the broker that may be changed", names)
    values = {200: ResponseSpec("By name.", dict[str, str])}
    yield _get(f"{path}/values", calls.values, "Settings of the broker that are set", values)
    changed = {200: ResponseSpec("Done and in force here.", str), **NOT_NOW}
    unknown = {412: ResponseSpec("There is no such setting here.", Reason)}
    malformed = {400: ResponseSpec("The value is no integer.", Reason)}
    yield Endpoint(
        method="POST",
        path=f"{path}/{{name}}/{{value}}",
        scope=Scope.ADMIN,
        handler=calls.put,
        summary="Set a setting of every broker.",
        answers={**changed, **unknown, **malformed},
    )
    about = "Take away a setting of every broker"
    yield _delete(f"{path}/{{name}}", calls.delete, about, answers={**changed, **unknown})


def _attachments(
    admin: PulsarAdmin, place: _Place, attached: AttachmentPlace
) -> Iterator[Endpoint]:
    calls = AttachmentCalls(admin.daemon, attached, admin.writing)
    path = f"{place.path}/resourcegroup"
    shown = {200: ResponseSpec("Its bare name, without quotes as in Pulsar, or nothing.", str)}
    answers = {**shown, **_MISSING, **_BAD_NAME}
    yield _get(path, calls.get, f"The group of {place.what}", answers, place.query)
    yield Endpoint(
        method="POST",
        path=f"{path}/{{group}}",
        scope=Scope.ADMIN,
        handler=calls.attach,
        summary=f"Put {place.what} into a group.",
        answers={**DONE, **_BAD_GROUP, **NOT_NOW},
        query=place.query,
    )
    yield _delete(path, calls.detach, f"Take {place.what} out of its group", query=place.query)


def _dispatch(place: _Place, name: str, calls: RateCalls) -> Iterator[Endpoint]:
    path, of = f"{place.path}/{name}", f"{name} of {place.what}"
    has_applied = bool(place.query)
    shown = {
        200: ResponseSpec("The rate, or nothing where it is not set.", AnyOf((DispatchRate, None)))
    }
    yield _get(
        path,
        calls.get_applied if has_applied else calls.get,
        f"The {of}",
        {**shown, **_MISSING, **_BAD_NAME},
        (_APPLIED, *place.query) if has_applied else (),
    )
    yield _post(path, calls.put, f"Set the {of}", DispatchRateBody, query=place.query)
    yield _delete(path, calls.delete, f"Take away the {of}", query=place.query)


def _publish(place: _Place, calls: RateCalls, *, absent: int) -> Iterator[Endpoint]:
    path, of = f"{place.path}/publishRate", f"publishRate of {place.what}"
    shown: dict[int, ResponseSpec] = {200: ResponseSpec("The rate.", PublishRate)}
    if absent == 200:
        shown = {
            200: ResponseSpec(
                "The rate, or nothing where it is not set.", AnyOf((PublishRate, None))
            )
        }
    else:
        shown[absent] = ResponseSpec("It is not set there.")
    answers = {**shown, **_MISSING, **_BAD_NAME}
    yield _get(path, calls.get, f"The {of}", answers, place.query)
    yield _post(path, calls.put, f"Set the {of}", PublishRateBody, query=place.query)
    yield _delete(path, calls.delete, f"Take away the {of}", query=place.query)


def _backlog(place: _Place, calls: BacklogCalls) -> Iterator[Endpoint]:
    path, query = f"{place.path}/backlogQuota", (_TYPE, *place.query)
    shown = {200: ResponseSpec("By what they measure; {} where none is set.", BacklogQuotaMap)}
    yield _get(
        f"{path}Map",
        calls.get,
        f"The backlog quotas of {place.what}",
        {**shown, **_MISSING, **_BAD_NAME},
        (_APPLIED, *place.query) if place.query else (),
    )
    of = f"one backlog quota of {place.what}"
    set_answers = {**DONE, **BAD_BODY, **_BAD_TYPE, **_BAD_NAME, **NOT_NOW}
    yield _post(path, calls.put, f"Set {of}", BacklogQuotaBody, query=query, answers=set_answers)
    deleted = {**DONE, **_MISSING_OR_TYPE, **_BAD_NAME, **NOT_NOW}
    yield _delete(path, calls.delete, f"Take away {of}", query=query, answers=deleted)


def _stats(place: _Place, calls: TopicStatsCalls) -> Iterator[Endpoint]:
    missing = {404: ResponseSpec("Its backlog was not reported lately.", Reason), **_BAD_NAME}
    yield _get(
        f"{place.path}/stats",
        calls.stats,
        f"The backlog of {place.what}",
        {200: ResponseSpec("What is known of it.", TopicStatsAnswer), **missing},
        place.query,
    )
    yield _get(
        f"{place.path}/partitioned-stats",
        calls.partitioned_stats,
        f"The backlogs of the partitions of {place.what}",
        {200: ResponseSpec("Together, and each.", PartitionedStatsAnswer), **missing},
        (_PER_PARTITION, *place.query),
    )


def _backlog_check(calls: BacklogCheckCall) -> Endpoint:
    return Endpoint(
        method="GET",
        path=f"{_ROOT}/brokers/backlog-quota-check",
        # It is work, and Pulsar wants a superuser for it.
        scope=Scope.ADMIN,
        handler=calls.check,
        summary="Check all backlogs now.",
        answers={
            204: ResponseSpec("It is done."),
            503: ResponseSpec("The daemon is stopping.", Reason),
        },
    )


_SET: Final = {**DONE, **BAD_BODY, **_BAD_NAME, **NOT_NOW}
_DELETED: Final = {**DONE, **_MISSING, **_BAD_NAME, **NOT_NOW}


def _get(
    path: str,
    handler: Handler,
    summary: str,
    answers: Mapping[int, ResponseSpec],
    query: tuple[Query, ...] = (),
) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        scope=Scope.READ,
        handler=handler,
        summary=f"{summary}.",
        answers=answers,
        query=query,
    )


def _post(
    path: str,
    handler: Handler,
    summary: str,
    body: Any,
    *,
    query: tuple[Query, ...],
    answers: Mapping[int, ResponseSpec] = _SET,
) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        scope=Scope.ADMIN,
        handler=handler,
        summary=f"{summary}.",
        body=body,
        body_required=False,
        answers=answers,
        query=query,
    )


def _delete(
    path: str,
    handler: Handler,
    summary: str,
    *,
    query: tuple[Query, ...] = (),
    answers: Mapping[int, ResponseSpec] = _DELETED,
) -> Endpoint:
    return Endpoint(
        method="DELETE",
        path=path,
        scope=Scope.ADMIN,
        handler=handler,
        summary=f"{summary}.",
        answers=answers,
        query=query,
    )
