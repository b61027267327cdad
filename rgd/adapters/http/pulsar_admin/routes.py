"""The calls under `/admin/v2`: a part of the one list of `rgd.adapters.http.routes`.

Paths and codes are Pulsar's. Topics come twice, `persistent` and `non-persistent`. Where two paths
match, the first here answers: a subscription that is called `resourcegroup` keeps Pulsar's own path.
"""

import asyncio
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import AnyOf, Endpoint, Query, ResponseSpec, read
from rgd.adapters.http.paging import WHOLE_QUERY
from rgd.adapters.http.pulsar_admin.attachments import AttachmentCalls
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
from rgd.adapters.http.pulsar_admin.places import (
    Naming,
    namespace_named,
    subscription_named,
    tenant_named,
    topic_named,
)
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


_SET: Final = {**DONE, **BAD_BODY, **_BAD_NAME, **NOT_NOW}
_DELETED: Final = {**DONE, **_MISSING, **_BAD_NAME, **NOT_NOW}


def endpoints(daemon: Daemon, writing: asyncio.Lock) -> Iterator[Endpoint]:
    """Every call under `/admin/v2`.

    Args:
        daemon: who answers.
        writing: held while groups are deleted or attached to.
    """
    yield from _resource_groups(ResourceGroupCalls(daemon, writing))
    yield from _namespaces(NamespaceCalls(daemon))
    yield from _dynamic_config(DynamicConfigCalls(daemon))
    tenant = _Place("a tenant", _TENANT, tenant_named)
    yield from _attachments(tenant, AttachmentCalls(daemon, tenant.naming, writing))
    yield from _of_namespaces(daemon, writing)
    yield _backlog_check(BacklogCheckCall(daemon.backlogs))
    for domain in _DOMAINS:
        yield from _of_topics(daemon, domain, writing)


class _Place(NamedTuple):
    """Where policies are set: for people, and as a path."""

    what: str
    path: str
    naming: Naming
    #: What any of its calls may be asked with.
    query: tuple[Query, ...] = ()


def _of_namespaces(daemon: Daemon, writing: asyncio.Lock) -> Iterator[Endpoint]:
    place = _Place("a namespace", _NAMESPACE, namespace_named)
    yield from _attachments(place, AttachmentCalls(daemon, place.naming, writing))
    yield from _dispatch(daemon, place)
    yield from _dispatch(daemon, place, "subscriptionDispatchRate", of_subscriptions=True)
    yield from _publish(place, RateCalls(daemon, place.naming, PUBLISH), absent=200)
    yield from _backlog(place, BacklogCalls(daemon, place.naming))


def _of_topics(daemon: Daemon, domain: str, writing: asyncio.Lock) -> Iterator[Endpoint]:
    path = f"{_ROOT}/{domain}/{{tenant}}/{{namespace}}/{{topic}}"
    place = _Place(f"a {domain} topic", path, topic_named(domain), _TOLERATED)
    one = _Place(
        f"one subscription of a {domain} topic",
        f"{path}/{{subscription}}",
        subscription_named(domain),
        _TOLERATED,
    )
    yield from _dispatch(daemon, one, of_subscriptions=True)
    yield from _dispatch(daemon, place)
    yield from _dispatch(daemon, place, "subscriptionDispatchRate", of_subscriptions=True)
    publish = RateCalls(daemon, place.naming, PUBLISH, absent=NO_CONTENT)
    yield from _publish(place, publish, absent=204)
    yield from _backlog(place, BacklogCalls(daemon, place.naming))
    yield from _attachments(place, AttachmentCalls(daemon, place.naming, writing))
    yield from _stats(place, TopicStatsCalls(daemon, domain))


def _resource_groups(calls: ResourceGroupCalls) -> Iterator[Endpoint]:
    groups, group = f"{_ROOT}/resourcegroups", f"{_ROOT}/resourcegroups/{{group}}"
    about = "The names of all groups, or a page of them."
    yield read(groups, calls.list, about, _NAMES, WHOLE_QUERY)
    shown = {200: ResponseSpec("The rates; -1 is unlimited.", ResourceGroup), **NO_GROUP}
    yield read(group, calls.get, "A group's four rates.", shown)
    about = "Create a group, or change the rates that the body says (as Pulsar)."
    answers = {**DONE, **BAD_BODY, **NOT_NOW}
    yield Endpoint(
        "PUT", group, Scope.ADMIN, about, answers, handler=calls.put, body=ResourceGroupBody
    )
    about = "Delete a group that nothing is attached to (as Pulsar)."
    yield _delete(group, calls.delete, about, {**DONE, **NO_GROUP, **NOT_NOW, **IN_USE})


def _namespaces(calls: NamespaceCalls) -> Iterator[Endpoint]:
    names = {200: ResponseSpec("Names.", list[str])}
    yield read(f"{_ROOT}/clusters", calls.clusters, "The cluster of this daemon.", names)
    yield read(
        f"{_ROOT}/brokers/configuration/runtime",
        calls.runtime_configuration,
        "The cluster's name and the broker's dispatch limit, of all of Pulsar's settings.",
        {200: ResponseSpec("The settings.", dict[str, str])},
    )
    about = "Every tenant of which anything is named, or a page of them."
    yield read(f"{_ROOT}/tenants", calls.tenants, about, _NAMES, WHOLE_QUERY)
    path = f"{_ROOT}/namespaces/{{tenant}}"
    about = "A tenant's namespaces, full names, or a page of them."
    yield read(path, calls.list, about, {**_NAMES, **_MISSING, **_BAD_NAME}, WHOLE_QUERY)
    policies = {200: ResponseSpec("Its policies.", NamespacePolicies), **_MISSING, **_BAD_NAME}
    yield read(_NAMESPACE, calls.policies, "What is set for a namespace.", policies)


def _dynamic_config(calls: DynamicConfigCalls) -> Iterator[Endpoint]:
    path = f"{_ROOT}/brokers/configuration"
    names = {200: ResponseSpec("Names.", list[str])}
    yield read(path, calls.names, "Settings of the broker that may be changed.", names)
    values = {200: ResponseSpec("By name.", dict[str, str])}
    yield read(f"{path}/values", calls.values, "Settings of the broker that are set.", values)
    changed = {200: ResponseSpec("Done and in force here.", str), **NOT_NOW}
    changed[412] = ResponseSpec("There is no such setting here.", Reason)
    about, one = "Set a setting of every broker.", f"{path}/{{name}}/{{value}}"
    answers = {**changed, 400: ResponseSpec("The value is no integer.", Reason)}
    yield Endpoint("POST", one, Scope.ADMIN, about, answers, handler=calls.put)
    about = "Take away a setting of every broker."
    yield _delete(f"{path}/{{name}}", calls.delete, about, changed)


def _attachments(place: _Place, calls: AttachmentCalls) -> Iterator[Endpoint]:
    path, query = f"{place.path}/resourcegroup", place.query
    shown = {200: ResponseSpec("Its bare name, without quotes as in Pulsar, or nothing.", str)}
    answers = {**shown, **_MISSING, **_BAD_NAME}
    yield read(path, calls.get, f"The group of {place.what}.", answers, query)
    about, one = f"Put {place.what} into a group.", f"{path}/{{group}}"
    answers = {**DONE, **_BAD_GROUP, **NOT_NOW}
    yield Endpoint("POST", one, Scope.ADMIN, about, answers, handler=calls.attach, query=query)
    yield _delete(path, calls.detach, f"Take {place.what} out of its group.", query=query)


def _dispatch(
    daemon: Daemon, place: _Place, name: str = "dispatchRate", *, of_subscriptions: bool = False
) -> Iterator[Endpoint]:
    calls = RateCalls(daemon, place.naming, DISPATCH, of_subscriptions=of_subscriptions)
    path, of = f"{place.path}/{name}", f"{name} of {place.what}."
    answers = {200: _rate_or_nothing(DispatchRate), **_MISSING, **_BAD_NAME}
    if place.query:
        yield read(path, calls.get_applied, f"The {of}", answers, (_APPLIED, *place.query))
    else:
        yield read(path, calls.get, f"The {of}", answers)
    yield _post(path, calls.put, f"Set the {of}", DispatchRateBody, place.query)
    yield _delete(path, calls.delete, f"Take away the {of}", query=place.query)


def _publish(place: _Place, calls: RateCalls, *, absent: int) -> Iterator[Endpoint]:
    path, of = f"{place.path}/publishRate", f"publishRate of {place.what}."
    shown = {200: _rate_or_nothing(PublishRate)}
    if absent != 200:
        shown = {200: ResponseSpec("The rate.", PublishRate)}
        shown[absent] = ResponseSpec("It is not set there.")
    answers = {**shown, **_MISSING, **_BAD_NAME}
    yield read(path, calls.get, f"The {of}", answers, place.query)
    yield _post(path, calls.put, f"Set the {of}", PublishRateBody, place.query)
    yield _delete(path, calls.delete, f"Take away the {of}", query=place.query)


def _rate_or_nothing(rate: type) -> ResponseSpec:
    return ResponseSpec("The rate, or nothing where it is not set.", AnyOf((rate, None)))


def _backlog(place: _Place, calls: BacklogCalls) -> Iterator[Endpoint]:
    path, query = f"{place.path}/backlogQuota", (_TYPE, *place.query)
    shown = {200: ResponseSpec("By what they measure; {} where none is set.", BacklogQuotaMap)}
    answers = {**shown, **_MISSING, **_BAD_NAME}
    about, of = f"The backlog quotas of {place.what}.", f"one backlog quota of {place.what}."
    applied = (_APPLIED, *place.query) if place.query else ()
    yield read(f"{path}Map", calls.get, about, answers, applied)
    set_answers = {**_SET, **_BAD_TYPE}
    yield _post(path, calls.put, f"Set {of}", BacklogQuotaBody, query, answers=set_answers)
    deleted = {**_DELETED, **_MISSING_OR_TYPE}
    yield _delete(path, calls.delete, f"Take away {of}", deleted, query)


def _stats(place: _Place, calls: TopicStatsCalls) -> Iterator[Endpoint]:
    missing = {404: ResponseSpec("Its backlog was not reported lately.", Reason), **_BAD_NAME}
    about = f"The backlog of {place.what}."
    answers = {200: ResponseSpec("What is known of it.", TopicStatsAnswer), **missing}
    yield read(f"{place.path}/stats", calls.stats, about, answers, place.query)
    about = f"The backlogs of the partitions of {place.what}."
    answers = {200: ResponseSpec("Together, and each.", PartitionedStatsAnswer), **missing}
    path, query = f"{place.path}/partitioned-stats", (_PER_PARTITION, *place.query)
    yield read(path, calls.partitioned_stats, about, answers, query)


def _backlog_check(calls: BacklogCheckCall) -> Endpoint:
    path = f"{_ROOT}/brokers/backlog-quota-check"
    stopping = ResponseSpec("The daemon is stopping.", Reason)
    answers = {204: ResponseSpec("It is done."), 503: stopping}
    # It is work, and Pulsar wants a superuser for it.
    return Endpoint(
        "GET", path, Scope.ADMIN, "Check all backlogs now.", answers, handler=calls.check
    )


def _post(
    path: str,
    handler: Handler,
    summary: str,
    body: Any,
    query: tuple[Query, ...],
    *,
    answers: Mapping[int, ResponseSpec] = _SET,
) -> Endpoint:
    return Endpoint(
        "POST",
        path,
        Scope.ADMIN,
        summary,
        answers,
        handler=handler,
        body=body,
        body_required=False,
        query=query,
    )


def _delete(
    path: str,
    handler: Handler,
    summary: str,
    answers: Mapping[int, ResponseSpec] = _DELETED,
    query: tuple[Query, ...] = (),
) -> Endpoint:
    return Endpoint("DELETE", path, Scope.ADMIN, summary, answers, handler=handler, query=query)
