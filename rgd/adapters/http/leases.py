"""`/v1/leases`: tokens that a caller takes in advance, spends by itself, and gives back.

Laws: names are those of `acquire`. Amounts in an answer are always added to what the caller has, so a
lost answer wastes tokens and misleads nobody. A lease that is not known is 404, also when it is released
for the second time.

How much a lease gets is decided by `rgd.core.leases`.
"""

import hashlib
from typing import Final

from msgspec import UNSET, Struct, UnsetType, structs

from rgd.adapters.http.acquire import name_of
from rgd.adapters.http.answers import over_headers, reply_of
from rgd.adapters.http.bodies import LeaseBody, ReleaseBody, RenewBody
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.errors import NotGoverned
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.shadow import HEADER, Shadow
from rgd.adapters.http.strict import BodyDecoder
from rgd.adapters.http.tokens import bearer_of
from rgd.adapters.http.usual import GRANT_HEADERS, TAKING
from rgd.core.buckets.decision import Answer, Level
from rgd.core.leases.model import TTL_DEFAULT_NS, LeaseAnswer, LeaseRequest, Renewal
from rgd.core.policies.model import Rate
from rgd.core.units import NS_PER_MS, RATE_MAX, Dimension, Kind, Pair, to_milli, to_units
from rgd.ports.answers import Answers
from rgd.ports.door import Scope, Ungoverned

_opening = BodyDecoder(LeaseBody)
_renewing = BodyDecoder(RenewBody)
_releasing = BodyDecoder(ReleaseBody)


class SafeRate(Struct, gc=False):
    """Units per second that a caller may use while the daemon is away; null: nothing limits it."""

    messages: float | None
    bytes: float | None


class LeaseView(Struct, omit_defaults=True, gc=False):
    """A lease was given or renewed; the limit is named only where one lowered the amounts."""

    lease_id: str
    #: Tokens taken by this call, in addition to those that the caller has; null: nothing limits it.
    messages: int | None
    bytes: int | None
    expires_in_ms: int
    refresh_in_ms: int
    safe_rate: SafeRate
    governed: bool = True
    limited_by: Level | None = None
    group: str | None = None
    dimension: Dimension | None = None
    #: Only where nothing could be added.
    retry_after_ms: int | None = None
    #: Taken beyond the soft limit of a group.
    over: bool = False
    #: Only where the daemon is a shadow: what would have been answered instead.
    shadow: str | None = None


#: What a shadow answers where there is no lease: to use what it likes, and to ask again soon.
_NO_LEASE: Final = LeaseView(
    "shadow", None, None, expires_in_ms=1000, refresh_in_ms=500, safe_rate=SafeRate(None, None)
)


class ReleaseView(Struct, gc=False):
    """What was given back."""

    messages: int
    bytes: int


class Leases:
    """Leases on behalf of HTTP callers."""

    def __init__(
        self, daemon: Answers, settings: HttpSettings, shadow: Shadow | None = None
    ) -> None:
        self._daemon = daemon
        self._shadow = shadow
        self._denies_ungoverned = settings.ungoverned == Ungoverned.DENY and shadow is None

    @Endpoint(
        "POST",
        "/v1/leases",
        Scope.QUERY,
        {200: ResponseSpec(LeaseView, headers_if_any=GRANT_HEADERS), **TAKING},
        (404,),
        body=LeaseBody,
    )
    def open(self, call: Call) -> Reply:
        """Take tokens in advance, perhaps fewer than are wanted, to spend them without asking."""
        body = _opening.decode(call.body)
        name = name_of(body)
        request = LeaseRequest(
            name,
            _wants(body.wants_messages_per_s, body.wants_bytes_per_s),
            TTL_DEFAULT_NS if body.ttl_ms is UNSET else body.ttl_ms * NS_PER_MS,
            0 if body.attempt is UNSET else body.attempt,
            _holder(call),
        )
        answer = self._daemon.open_lease(request)
        return self._reply(answer, name[0], str(name[3] or name[2] or name[1]))

    @Endpoint(
        "POST",
        "/v1/leases/{lease}/renew",
        Scope.QUERY,
        {200: LeaseView, **TAKING},
        (404,),
        body=RenewBody,
    )
    def renew(self, call: Call) -> Reply:
        """Extend a lease, and add what it lacks."""
        body = _renewing.decode(call.body)
        is_said = body.wants_messages_per_s is not UNSET or body.wants_bytes_per_s is not UNSET
        renewal = Renewal(
            Pair(body.messages or 0, body.bytes or 0),
            _wants(body.wants_messages_per_s, body.wants_bytes_per_s) if is_said else None,
            None if body.ttl_ms is UNSET else body.ttl_ms * NS_PER_MS,
        )
        answer = self._daemon.renew_lease(call.path["lease"], renewal)
        return self._reply(answer, Kind.PUBLISH, "the name of the lease")

    @Endpoint(
        "POST",
        "/v1/leases/{lease}/release",
        Scope.QUERY,
        {200: ReleaseView},
        (404,),
        body=ReleaseBody,
    )
    def release(self, call: Call) -> Reply:
        """End a lease, and give back what was not spent."""
        body = _releasing.decode(call.body)
        left = Pair(body.messages or 0, body.bytes or 0)
        return json_reply(ReleaseView(*self._daemon.release_lease(call.path["lease"], left)))

    def _reply(self, answer: LeaseAnswer | Answer, kind: Kind, name: str) -> Reply:
        if self._shadow is not None:
            return self._shadow_reply(answer, self._shadow)
        if not isinstance(answer, LeaseAnswer):
            return reply_of(answer, kind)
        if self._denies_ungoverned and not answer.decision.governed:
            self._daemon.release_lease(answer.lease_id, Pair())
            raise NotGoverned(name)
        return json_reply(_view(answer), headers=over_headers(answer.decision))

    def _shadow_reply(self, answer: LeaseAnswer | Answer, shadow: Shadow) -> Reply:
        """A lease without bounds, whatever was decided and taken."""
        view = _view(answer) if isinstance(answer, LeaseAnswer) else _NO_LEASE
        decision = answer.decision if isinstance(answer, LeaseAnswer) else answer
        shadowed = shadow.shadowed_lease(decision)
        if shadowed is None:
            return json_reply(structs.replace(view, messages=None, bytes=None))
        told = shadow.granted(shadowed, 0, 0, decision)
        view = structs.replace(
            view,
            messages=None,
            bytes=None,
            limited_by=told.limited_by,
            group=told.group,
            dimension=told.dimension,
            shadow=shadowed,
        )
        return json_reply(view, headers={HEADER: shadowed})


def _wants(messages: float | UnsetType, size: float | UnsetType) -> Pair:
    """Rates in Milli per second."""
    return Pair(*(0 if of is UNSET else min(to_milli(of), RATE_MAX) for of in (messages, size)))


def _holder(call: Call) -> str:
    """Who asks: a token. Without tokens nobody can be told from anybody else."""
    said = call.headers.get("Authorization", "")
    # Not the header: it says the same token in many ways, and each would be another caller.
    token = bearer_of(said) or said
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest() if token else ""


def _view(answer: LeaseAnswer) -> LeaseView:
    decision = answer.decision
    return LeaseView(
        answer.lease_id,
        answer.messages,
        answer.bytes,
        answer.expires_in_ms,
        answer.refresh_in_ms,
        SafeRate(_rate(answer.safe_messages), _rate(answer.safe_bytes)),
        governed=decision.governed,
        limited_by=decision.limited_by,
        group=decision.group,
        dimension=decision.dimension,
        retry_after_ms=None if decision.granted else decision.retry_after_ms,
        over=decision.over,
    )


def _rate(rate: Rate) -> float | None:
    return None if rate is None else to_units(rate)
