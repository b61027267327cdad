"""The calls that connections answer themselves: what they are, and who answers each.

Law: they are answered from the gate's own memory, so they need no plane, and nothing here loads what only the plane needs.
The plane describes them (`openapi`) without having anybody who answers them.
"""

from typing import Final

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.answers import (
    AcquireAnswer,
    ItemFault,
    Reason,
    TooLargeAnswer,
    UnknownAnswer,
)
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.check import CHECK, CHECK_BELOW, Check
from rgd.adapters.http.endpoint import AnyOf, ArrayOf, Endpoint, ResponseSpec
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.leases import OPEN, RELEASE, RENEW, Leases
from rgd.adapters.http.probes import HEALTHZ, READYZ, Probes
from rgd.adapters.http.route_table import Route
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.settle import SETTLE, Settle
from rgd.adapters.http.shadow import Shadow
from rgd.adapters.http.turns import Turns
from rgd.adapters.http.usual import REFUSAL_HEADERS
from rgd.ports.answers import Answers
from rgd.ports.door import Scope, Ungoverned

UNKNOWN_HEADERS: Final = ("Retry-After",)

ACQUIRE: Final = Endpoint(
    method="POST",
    path="/v1/acquire",
    scope=Scope.QUERY,
    summary="May so much pass? One question, or many in an array.",
    body=AnyOf((AcquireBody, ArrayOf(AcquireBody))),
    answers={
        200: ResponseSpec(
            "Granted, whole or in part; for an array the answers in order.",
            AnyOf((AcquireAnswer, ArrayOf(AnyOf((AcquireAnswer, ItemFault, UnknownAnswer))))),
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
)

#: What each of them is.
HOT: Final = (ACQUIRE, SETTLE, OPEN, RENEW, RELEASE, CHECK, CHECK_BELOW, HEALTHZ, READYZ)


class HotCalls:
    """Answers them.

    Args:
        daemon: decides.
        settings: their limits.
        gate: knows who may hear reasons.
    """

    def __init__(self, daemon: Answers, settings: HttpSettings, gate: Gate) -> None:
        self.shadow: Shadow | None = None
        if settings.shadow:
            self.shadow = Shadow(denies_ungoverned=settings.ungoverned == Ungoverned.DENY)
        turns = Turns()
        self.acquire = Acquire(daemon, settings, turns, self.shadow)
        self.probes = Probes(daemon, gate)
        leases, check = Leases(daemon, settings, self.shadow), Check(self.acquire, daemon.nearest)
        self.routes: tuple[Route, ...] = (
            ACQUIRE.route(self.acquire.answer),
            SETTLE.route(Settle(daemon, settings, turns).answer),
            OPEN.route(leases.open),
            RENEW.route(leases.renew),
            RELEASE.route(leases.release),
            CHECK.route(check.answer),
            CHECK_BELOW.route(check.answer_below),
            HEALTHZ.route(self.probes.healthz),
            READYZ.route(self.probes.readyz),
        )
