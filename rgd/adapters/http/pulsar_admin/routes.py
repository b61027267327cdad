"""The calls under `/admin/v2`: a part of the one list of `rgd.adapters.http.plane`.

Paths and codes are Pulsar's. Topics come twice, `persistent` and `non-persistent`. Where two paths
match, the first here answers: a subscription that is called `resourcegroup` keeps Pulsar's own path.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msgspec import Struct

from rgd.adapters.http.endpoint import Endpoint, answered, change
from rgd.adapters.http.pulsar_admin.attachments import AttachmentCalls
from rgd.adapters.http.pulsar_admin.backlog_quotas import BacklogCalls
from rgd.adapters.http.pulsar_admin.dynamic_config import DynamicConfigCalls
from rgd.adapters.http.pulsar_admin.namespaces import NAMESPACE, NamespaceCalls
from rgd.adapters.http.pulsar_admin.places import (
    AppliedQuery,
    Naming,
    TopicQuery,
    namespace_named,
    subscription_named,
    tenant_named,
    topic_named,
)
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH, RateForm
from rgd.adapters.http.pulsar_admin.rates import RateCalls
from rgd.adapters.http.pulsar_admin.resource_groups import ResourceGroupCalls
from rgd.adapters.http.pulsar_admin.topic_stats import BacklogCheckCall, TopicStatsCalls
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope

_DOMAINS: Final = ("persistent", "non-persistent")


def endpoints(daemon: Daemon, writing: asyncio.Lock) -> Iterator[Endpoint]:
    """Every call under `/admin/v2`.

    Args:
        daemon: who answers.
        writing: held while groups are deleted or attached to.
    """
    yield from answered(ResourceGroupCalls(daemon, writing))
    yield from answered(NamespaceCalls(daemon))
    yield from answered(DynamicConfigCalls(daemon))
    tenant = _Place("a tenant", "/admin/v2/tenants/{tenant}", tenant_named)
    yield from _at(tenant, AttachmentCalls(daemon, tenant.naming, writing))
    place = _Place("a namespace", NAMESPACE, namespace_named)
    yield from _at(place, AttachmentCalls(daemon, place.naming, writing))
    yield from _policies(daemon, place)
    yield from answered(BacklogCheckCall(daemon.backlogs))
    for domain in _DOMAINS:
        yield from _of_topics(daemon, domain, writing)


class _Place(NamedTuple):
    """Where policies are set: for people, and as a path."""

    what: str
    path: str
    naming: Naming
    #: What any of its calls may be asked with.
    query: tuple[type[Struct], ...] = ()


def _of_topics(daemon: Daemon, domain: str, writing: asyncio.Lock) -> Iterator[Endpoint]:
    path = f"/admin/v2/{domain}/{{tenant}}/{{namespace}}/{{topic}}"
    place = _Place(f"a {domain} topic", path, topic_named(domain), (TopicQuery,))
    what, naming = f"one subscription of a {domain} topic", subscription_named(domain)
    one = _Place(what, f"{path}/{{subscription}}", naming, place.query)
    yield from _rates(daemon, one, DISPATCH, "dispatchRate", of_subscriptions=True)
    yield from _policies(daemon, place)
    yield from _at(place, AttachmentCalls(daemon, place.naming, writing))
    yield from _at(place, TopicStatsCalls(daemon, domain))


def _policies(daemon: Daemon, place: _Place) -> Iterator[Endpoint]:
    yield from _rates(daemon, place, DISPATCH, "dispatchRate")
    yield from _rates(daemon, place, DISPATCH, "subscriptionDispatchRate", of_subscriptions=True)
    yield from _rates(daemon, place, PUBLISH, "publishRate")
    yield from _at(place, BacklogCalls(daemon, place.naming))


def _rates(
    daemon: Daemon, place: _Place, form: RateForm[Any], name: str, *, of_subscriptions: bool = False
) -> Iterator[Endpoint]:
    calls = RateCalls(daemon, place.naming, form, of_subscriptions=of_subscriptions)
    path, of = f"{place.path}/{name}", f"{name} of {place.what}."
    answer: Any = form.answer
    shown = {200: answer | None}
    if form is PUBLISH and place.query:
        shown = {200: answer, 204: None}
    applied = (AppliedQuery,) if form is DISPATCH and place.query else ()
    shows = Endpoint("GET", path, Scope.READ, shown, (404, 412), query=(*applied, *place.query))
    yield replace(shows, summary=f"The {of}", handler=calls.get)
    errors, query = (404, 409, 412), place.query
    sets = change("POST", path, *errors, body=form.body, body_required=False, query=query)
    yield replace(sets, summary=f"Set the {of}", handler=calls.put)
    unsets = change("DELETE", path, *errors, query=query)
    yield replace(unsets, summary=f"Take away the {of}", handler=calls.delete)


def _at(place: _Place, calls: object) -> Iterator[Endpoint]:
    """Calls as they are at a place."""
    for one in answered(calls):
        query = [of for of in one.query if of is not AppliedQuery or place.query]
        yield replace(
            one,
            path=place.path + one.path,
            summary=one.summary.format(place=place.what),
            query=(*query, *place.query),
        )
