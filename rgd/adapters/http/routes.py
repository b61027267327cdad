"""The list of all calls: method, path, the scope it needs, who answers, what it may answer.

Law: a call exists if and only if it stands here; the router, the tokens' scopes
and /openapi.json are all made from this one list. Its part under `/admin/v2` is
written in `pulsar_admin.routes`, what connections answer themselves in `hot`.

`HEAD` goes wherever `GET` goes and is not listed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
from rgd.adapters.http.reply import Handler
from rgd.adapters.http.scrapes import Scrapes, scrape_endpoint
from rgd.adapters.http.usual import (
    BAD_BODY,
    BAD_NAME,
    BAD_PAGE,
    DONE,
    IN_USE,
    NO_GROUP,
    NOT_NOW,
)
from rgd.ports.door import Scope
from rgd.views.model import BrokerView, GroupView


@dataclass(frozen=True, slots=True)
class Doors:
    """Who answers."""

    groups: Groups
    explain: Explain
    backlogs: Backlogs
    pulsar_admin: pulsar_admin.PulsarAdmin
    scrapes: Scrapes
    #: Whether calls need a token, as the live page asks.
    needs_token: Callable[[], bool]
    #: Answers with what `openapi` makes of this list.
    openapi: Handler
    #: None: there is no usage log to ask.
    log: Log | None = None
    #: None: there is no live view.
    live: Live | None = None


def endpoints(doors: Doors) -> tuple[Endpoint, ...]:
    """Every call there is."""
    live = doors.live
    return (
        *HOT,
        *_groups(doors.groups),
        *_group_changes(doors.groups),
        _brokers(doors.groups),
        explain_endpoint(doors.explain),
        *backlog_endpoints(doors.backlogs),
        *(log_endpoints(doors.log) if doors.log else ()),
        *((*live_endpoints(live), *page_endpoints(doors.needs_token)) if live else ()),
        *pulsar_admin.endpoints(doors.pulsar_admin),
        scrape_endpoint(doors.scrapes),
        _description(doors.openapi),
    )


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


def _description(openapi: Handler) -> Endpoint:
    answers = {200: ResponseSpec("OpenAPI 3.1.", dict[str, Any])}
    return read("/openapi.json", openapi, "This description.", answers)
