"""The list of all calls: method, path, the scope it needs, who answers, what it may answer.

Law: a call exists if and only if it stands here (but /openapi.json, which `plane` makes of
the list); the router, the tokens' scopes and that document are all made from it. Its part under `/admin/v2` is
written in `pulsar_admin.routes`, what connections answer themselves in `hot`.

`HEAD` goes wherever `GET` goes and is not listed.
"""

import asyncio
from collections.abc import Callable, Iterator

from rgd.adapters.http.backlogs import Backlogs, backlog_endpoints
from rgd.adapters.http.bodies import GroupBody
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec, read
from rgd.adapters.http.explain import Explain, explain_endpoint
from rgd.adapters.http.groups import BROKERS, GROUPS, ONE_GROUP, Groups
from rgd.adapters.http.hot import HOT
from rgd.adapters.http.live import Live, live_endpoints
from rgd.adapters.http.live_page import page_endpoints
from rgd.adapters.http.log import Log, log_endpoints
from rgd.adapters.http.paging import PAGE_QUERY
from rgd.adapters.http.pulsar_admin import routes as pulsar_admin
from rgd.adapters.http.reply import MetricsPage
from rgd.adapters.http.scrapes import Scrapes, scrape_endpoint
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.usual import (
    BAD_BODY,
    BAD_NAME,
    BAD_PAGE,
    DONE,
    IN_USE,
    NO_GROUP,
    NOT_NOW,
)
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope
from rgd.ports.log_door import LogDoor
from rgd.views.model import BrokerView, GroupView


def endpoints(
    daemon: Daemon,
    settings: HttpSettings,
    *,
    metrics: MetricsPage,
    needs_token: Callable[[], bool],
    log_door: LogDoor | None,
    live: Live | None,
) -> Iterator[Endpoint]:
    """Every call there is, and who answers it; the arguments are those of `plane.Plane`."""
    #: Held while a group is changed in part, deleted or attached to.
    writing = asyncio.Lock()
    groups = Groups(daemon, writing)
    yield from HOT
    yield from _groups(groups)
    yield from _group_changes(groups)
    yield _brokers(groups)
    yield explain_endpoint(Explain(daemon))
    yield from backlog_endpoints(Backlogs(daemon.backlogs, settings))
    if log_door is not None:
        yield from log_endpoints(Log(log_door))
    if live is not None:
        yield from live_endpoints(live)
        yield from page_endpoints(needs_token)
    yield from pulsar_admin.endpoints(daemon, writing)
    yield scrape_endpoint(Scrapes(metrics))


def _groups(groups: Groups) -> tuple[Endpoint, ...]:
    page = ResponseSpec("The groups, by name.", list[GroupView], headers_if_any=("Link",))
    about = "A page of groups: quota, share, usage map."
    one = {200: ResponseSpec("The group.", GroupView), **BAD_NAME, **NO_GROUP}
    about_one = "One group: quota, this broker's share, every row of the usage map."
    return (
        read(GROUPS, groups.list, about, {200: page, **BAD_PAGE}, PAGE_QUERY),
        read(ONE_GROUP, groups.get, about_one, one),
    )


def _group_changes(groups: Groups) -> Iterator[Endpoint]:
    scope = Scope.ADMIN
    answers = {200: ResponseSpec("The group, in force here.", GroupView), **BAD_BODY, **NOT_NOW}
    about = "Create a group, or replace it whole."
    yield Endpoint("PUT", ONE_GROUP, scope, about, answers, handler=groups.put, body=GroupBody)
    new = ResponseSpec("The group, which is new, in force here.", GroupView)
    about = "Change what the body says of a group, and keep the rest."
    answers = {**answers, 201: new}
    yield Endpoint("PATCH", ONE_GROUP, scope, about, answers, handler=groups.patch, body=GroupBody)
    about = "Delete a group that nothing is attached to."
    answers = {**DONE, **BAD_NAME, **NO_GROUP, **NOT_NOW, **IN_USE}
    yield Endpoint("DELETE", ONE_GROUP, scope, about, answers, handler=groups.delete)


def _brokers(groups: Groups) -> Endpoint:
    about = "A page of who is in the exchange, since when, how stale, stock or rgd, and in which dialects."
    page = ResponseSpec("The brokers, by name.", list[BrokerView], headers_if_any=("Link",))
    return read(BROKERS, groups.brokers, about, {200: page, **BAD_PAGE}, PAGE_QUERY)
