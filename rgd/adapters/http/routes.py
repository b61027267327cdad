"""The list of all calls: method, path, the scope it needs, who answers, what it may answer.

Law: a call exists if and only if it stands here; the router, the tokens' scopes
and /openapi.json are all made from this one list. Its part under `/admin/v2` is
written in `pulsar_admin.routes`.

`HEAD` goes wherever `GET` goes and is not listed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.answers import (
    AcquireAnswer,
    ItemFault,
    Reason,
    TooLargeAnswer,
    UnknownAnswer,
)
from rgd.adapters.http.backlogs import Backlogs, backlog_endpoints
from rgd.adapters.http.bodies import AcquireBody, GroupBody
from rgd.adapters.http.check import Check, check_endpoints
from rgd.adapters.http.endpoint import AnyOf, ArrayOf, Endpoint, ResponseSpec
from rgd.adapters.http.explain import Explain, explain_endpoints
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.group_patch import GroupPatch, group_patch_endpoints
from rgd.adapters.http.groups import BROKERS, GROUPS, Groups
from rgd.adapters.http.leases import Leases, lease_endpoints
from rgd.adapters.http.live import Live, live_endpoints
from rgd.adapters.http.live_page import page_endpoints
from rgd.adapters.http.log import Log, log_endpoints
from rgd.adapters.http.paging import PAGE_QUERY
from rgd.adapters.http.probes import Alive, NotReady, Probes, Ready
from rgd.adapters.http.pulsar_admin import routes as pulsar_admin
from rgd.adapters.http.reply import Handler
from rgd.adapters.http.settle import Settle, settle_endpoints
from rgd.adapters.http.usual import (
    BAD_BODY,
    BAD_NAME,
    BAD_PAGE,
    DONE,
    IN_USE,
    NO_GROUP,
    NOT_NOW,
    REFUSAL_HEADERS,
)
from rgd.core.buckets.decision import Name
from rgd.core.buckets.headroom import Headroom
from rgd.ports.door import Scope
from rgd.views.model import BrokerView, GroupView

UNKNOWN_HEADERS: Final = ("Retry-After",)


@dataclass(frozen=True, slots=True)
class Doors:
    """Who answers."""

    acquire: Acquire
    settle: Settle
    leases: Leases
    groups: Groups
    group_patch: GroupPatch
    explain: Explain
    #: The limit nearest to refusing a name that was just granted.
    nearest: Callable[[Name], Headroom | None]
    backlogs: Backlogs
    pulsar_admin: pulsar_admin.PulsarAdmin
    probes: Probes
    gate: Gate
    #: Answers with what `openapi` makes of this list.
    openapi: Handler
    #: None: there is no usage log to ask.
    log: Log | None = None
    #: None: there is no live view.
    live: Live | None = None


def endpoints(doors: Doors) -> tuple[Endpoint, ...]:
    """Every call there is."""
    return (
        *_acquire(doors.acquire),
        *settle_endpoints(doors.settle),
        *lease_endpoints(doors.leases),
        *check_endpoints(Check(doors.acquire, doors.nearest)),
        *_groups(doors.groups),
        *_brokers(doors.groups),
        *group_patch_endpoints(doors.group_patch),
        *explain_endpoints(doors.explain),
        *backlog_endpoints(doors.backlogs),
        *(log_endpoints(doors.log) if doors.log else ()),
        *((*live_endpoints(doors.live), *page_endpoints(doors.gate)) if doors.live else ()),
        *pulsar_admin.endpoints(doors.pulsar_admin),
        *_probes(doors.probes, doors.openapi),
    )


def _acquire(acquire: Acquire) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            method="POST",
            path="/v1/acquire",
            scope=Scope.QUERY,
            handler=acquire.answer,
            is_hot=True,
            summary="May so much pass? One question, or many in an array.",
            body=AnyOf((AcquireBody, ArrayOf(AcquireBody))),
            answers={
                200: ResponseSpec(
                    "Granted, whole or in part; for an array the answers in order.",
                    AnyOf(
                        (AcquireAnswer, ArrayOf(AnyOf((AcquireAnswer, ItemFault, UnknownAnswer))))
                    ),
                    headers_if_any=("X-Rgd-Shadow", "X-Rgd-Over"),
                ),
                400: ResponseSpec("The body is malformed; the field is named.", Reason),
                403: ResponseSpec(
                    "The token lacks the scope; or no limit applies and http.ungoverned is deny.",
                    Reason,
                ),
                404: ResponseSpec("There is no such group.", Reason),
                413: ResponseSpec(
                    "More than can ever be granted at once; or the body or the array is too large.",
                    AnyOf((TooLargeAnswer, Reason)),
                ),
                429: ResponseSpec(
                    "Refused; by a backlog quota only with Retry-After.",
                    AcquireAnswer,
                    headers=REFUSAL_HEADERS[:1],
                    headers_if_any=REFUSAL_HEADERS[1:],
                ),
                503: ResponseSpec(
                    "No policies are known yet; or too many connections, or too much in work.",
                    AnyOf((UnknownAnswer, Reason)),
                    headers_if_any=UNKNOWN_HEADERS,
                ),
            },
        ),
    )


def _groups(groups: Groups) -> tuple[Endpoint, ...]:
    path = "/v1/groups/{group}"
    return (
        Endpoint(
            method="GET",
            path=GROUPS,
            scope=Scope.READ,
            handler=groups.list,
            summary="A page of groups: quota, share, usage map.",
            query=PAGE_QUERY,
            answers={
                200: ResponseSpec(
                    "The groups, by name.", list[GroupView], headers_if_any=("Link",)
                ),
                **BAD_PAGE,
            },
        ),
        Endpoint(
            method="GET",
            path=path,
            scope=Scope.READ,
            handler=groups.get,
            summary="One group: quota, this broker's share, every row of the usage map.",
            answers={200: ResponseSpec("The group.", GroupView), **BAD_NAME, **NO_GROUP},
        ),
        Endpoint(
            method="PUT",
            path=path,
            scope=Scope.ADMIN,
            handler=groups.put,
            summary="Create a group, or replace it whole.",
            body=GroupBody,
            answers={
                200: ResponseSpec("The group, in force here.", GroupView),
                **BAD_BODY,
                **NOT_NOW,
            },
        ),
        Endpoint(
            method="DELETE",
            path=path,
            scope=Scope.ADMIN,
            handler=groups.delete,
            summary="Delete a group that nothing is attached to.",
            answers={
                **DONE,
                **BAD_NAME,
                **NO_GROUP,
                **NOT_NOW,
                **IN_USE,
            },
        ),
    )


def _brokers(groups: Groups) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            method="GET",
            path=BROKERS,
            scope=Scope.READ,
            handler=groups.brokers,
            summary="A page of who is in the exchange, since when, how stale, stock or rgd, and in which dialects.",
            query=PAGE_QUERY,
            answers={
                200: ResponseSpec(
                    "The brokers, by name.", list[BrokerView], headers_if_any=("Link",)
                ),
                **BAD_PAGE,
            },
        ),
    )


def _probes(probes: Probes, openapi: Handler) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            method="GET",
            path="/metrics",
            scope=Scope.READ,
            handler=probes.metrics,
            is_probe=True,
            summary="Metrics for Prometheus.",
            answers={
                200: ResponseSpec(
                    "In the format that Accept asks for.", str, content_type="text/plain"
                ),
                503: ResponseSpec("Too many scrapes at once.", Reason, headers=("Retry-After",)),
            },
        ),
        Endpoint(
            method="GET",
            path="/healthz",
            scope=None,
            handler=probes.healthz,
            is_probe=True,
            is_hot=True,
            summary="Whether the process is alive.",
            answers={200: ResponseSpec("It is.", Alive)},
        ),
        Endpoint(
            method="GET",
            path="/readyz",
            scope=None,
            handler=probes.readyz,
            is_probe=True,
            is_hot=True,
            summary="Whether traffic should come here.",
            answers={
                200: ResponseSpec("Shares are known; `degraded` says what works less well.", Ready),
                503: ResponseSpec("Shares are not known yet, or it drains.", NotReady),
            },
        ),
        Endpoint(
            method="GET",
            path="/openapi.json",
            scope=Scope.READ,
            handler=openapi,
            summary="This description.",
            answers={200: ResponseSpec("OpenAPI 3.1.", dict[str, Any])},
        ),
    )
