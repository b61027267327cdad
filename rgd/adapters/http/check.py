"""`/v1/check` and all below it, for gateways that ask before they pass a request on.

nginx (`auth_request`), Traefik (ForwardAuth) and Envoy (`ext_authz`) understand a status and headers: 200 lets the
request pass, any other status does not. nginx knows no refusal but 401 and 403, so `deny=403` replaces every refusal.

Laws:

- Any method asks the same; a body is not read.
- Who is asked about comes either from the query of `/v1/check` itself or from the headers `X-Rgd-*`, never from both.
  With a query, headers are not looked at: a gateway passes on its caller's own headers. Below `/v1/check` the query
  is not looked at: Envoy appends its caller's path and query there. So a caller whose gateway sets the query, or
  the headers, cannot ask in another name or for less than it takes.
- A header that comes twice is at fault: one of them may be the caller's.
- The whole request passes, or nothing.
"""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from msgspec import UNSET

from rgd.adapters.http.acquire import Acquire, name_of
from rgd.adapters.http.answers import (
    AcquireAnswer,
    Reason,
    TooLargeAnswer,
    UnknownAnswer,
    grant_headers,
)
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.endpoint import AnyOf, Endpoint, Query, ResponseSpec
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import Call, Reply
from rgd.adapters.http.usual import REFUSAL_HEADERS
from rgd.core.buckets.decision import Name
from rgd.core.buckets.headroom import Headroom
from rgd.core.units import COUNT_MAX, Kind
from rgd.ports.door import Scope

PATH: Final = "/v1/check"

#: Statuses that `deny` may name.
DENY_STATUSES: Final = (403, 429, 503)

_NAMES: Final = ("tenant", "namespace", "group", "topic", "subscription")
_AMOUNTS: Final = ("messages", "bytes", "attempt")
_FIELDS: Final = (*_NAMES, "kind", *_AMOUNTS, "deny", "headers")
_HEADERS: Final = {name: f"X-Rgd-{name.capitalize()}" for name in _FIELDS}
_FIELD_OF: Final = {header.lower(): name for name, header in _HEADERS.items()}

_DIGITS: Final = re.compile(r"[0-9]{1,19}")

#: The statuses of refusals: what `deny` replaces.
_REFUSALS: Final = frozenset((413, 429, 503))


class Check:
    """Asks on behalf of gateways.

    Args:
        acquire: decides.
        nearest: the limit nearest to refusing a name that was just granted.
    """

    def __init__(self, acquire: Acquire, nearest: Callable[[Name], Headroom | None]) -> None:
        self._reply_to = acquire.reply_to
        self._nearest = nearest

    def answer(self, call: Call) -> Reply:
        """Let a request pass, or not; named by the query, or without one by headers."""
        return self._answer(_query(call) if call.query else _headers(call))

    def answer_below(self, call: Call) -> Reply:
        """Let a request pass, or not; named by headers only."""
        return self._answer(_headers(call))

    def _answer(self, given: Mapping[str, str]) -> Reply:
        deny, shows_limit = _deny(given), _shows_limit(given)
        asked = _asked(given)
        reply = self._reply_to(asked)
        if shows_limit and reply.status == HTTPStatus.OK:
            return self._with_limit(reply, name_of(asked))
        if deny is None or reply.status not in _REFUSALS:
            return reply
        return reply._replace(status=deny)

    def _with_limit(self, reply: Reply, name: Name) -> Reply:
        """A grant with the limit that is nearest to refusing, if one applies."""
        room = self._nearest(name)
        if room is None:
            return reply
        return reply._replace(headers={**reply.headers, **grant_headers(room, name[0])})


_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0, "maximum": COUNT_MAX}
_QUERY: Final = (
    *(Query(name, "As in `POST /v1/acquire`.", _STRING) for name in _NAMES),
    Query("kind", "Which way.", {"enum": [*Kind], "default": Kind.PUBLISH}),
    Query("messages", "How many.", {**_COUNT, "default": 1}),
    Query("bytes", "How many.", {**_COUNT, "default": 0}),
    Query("attempt", "1 is new work, more a retry.", {**_COUNT, "minimum": 1}),
    Query("deny", "The status of every refusal.", {"enum": [*DENY_STATUSES]}),
    Query("headers", "1: grants have the RateLimit headers too.", {"enum": [0, 1], "default": 0}),
)
_REFUSED: Final = AnyOf((AcquireAnswer, TooLargeAnswer, UnknownAnswer, Reason))
_ANSWERS: Final = {
    200: ResponseSpec(
        "It may.",
        AcquireAnswer,
        headers_if_any=("X-Rgd-Shadow", "X-Rgd-Over", *REFUSAL_HEADERS[1:]),
    ),
    400: ResponseSpec("A name or an amount is malformed; it is named.", Reason),
    403: ResponseSpec(
        "No limit applies and http.ungoverned is deny; the token lacks the scope; or deny=403.",
        _REFUSED,
        headers_if_any=(*REFUSAL_HEADERS, "WWW-Authenticate"),
    ),
    404: ResponseSpec("There is no such group.", Reason),
    413: ResponseSpec("More than can ever be granted at once.", _REFUSED),
    429: ResponseSpec("It may not; or deny=429.", _REFUSED, headers_if_any=REFUSAL_HEADERS),
    503: ResponseSpec(
        "No policies are known yet; too many connections; or deny=503.",
        _REFUSED,
        headers_if_any=REFUSAL_HEADERS,
    ),
}
CHECK: Final = Endpoint(
    method="*",
    path=PATH,
    scope=Scope.QUERY,
    summary="May a request pass? For nginx, Traefik and Envoy; names as query or X-Rgd-* headers.",
    query=_QUERY,
    answers=_ANSWERS,
)
CHECK_BELOW: Final = Endpoint(
    method="*",
    path=f"{PATH}/{{rest:path}}",
    scope=Scope.QUERY,
    summary="May a request pass? Names as X-Rgd-* headers; the rest of the path is the caller's.",
    answers=_ANSWERS,
)


def _query(call: Call) -> Mapping[str, str]:
    """The fields that the query says."""
    for name in call.query:
        if name not in _FIELDS:
            raise BadBody(f"{name}: unknown parameter; expected one of {', '.join(_FIELDS)}")
    if len(set(call.query)) != len(call.query):
        raise BadBody("query: expected each parameter once")
    return call.query


def _headers(call: Call) -> Mapping[str, str]:
    """The fields that the headers say."""
    given: dict[str, str] = {}
    for header, value in call.headers.items():
        name = _FIELD_OF.get(header.lower())
        if name is None:
            continue
        if name in given:
            # The gateway's and its caller's: nobody knows which is which.
            raise BadBody(f"{_HEADERS[name]}: expected once, got it twice")
        given[name] = value
    return given


def _deny(given: Mapping[str, str]) -> int | None:
    if "deny" not in given:
        return None
    status = _number(given, "deny")
    if status not in DENY_STATUSES:
        raise BadBody(f"deny: expected one of {', '.join(map(str, DENY_STATUSES))}")
    return status


def _shows_limit(given: Mapping[str, str]) -> bool:
    """Whether grants have the `RateLimit` headers too."""
    told = given.get("headers", "0")
    if told not in {"0", "1"}:
        raise BadBody("headers: expected 0 or 1")
    if told == "1" and "group" in given:
        raise BadBody("headers: expected tenant and namespace beside it, got group")
    return told == "1"


def _asked(given: Mapping[str, str]) -> AcquireBody:
    names: dict[str, Any] = {name: given.get(name, UNSET) for name in _NAMES}
    kind = given.get("kind", Kind.PUBLISH)
    if kind not in set(Kind):
        raise BadBody(f"kind: expected {' or '.join(Kind)}")
    amounts: dict[str, Any] = {
        name: _number(given, name) if name in given else UNSET for name in _AMOUNTS
    }
    if amounts["attempt"] == 0:
        raise BadBody("attempt: expected an integer from 1")
    return AcquireBody(**names, **amounts, kind=Kind(kind), partial=False)


def _number(given: Mapping[str, str], name: str) -> int:
    said = given[name]
    if not _DIGITS.fullmatch(said) or (number := int(said)) > COUNT_MAX:
        raise BadBody(f"{name}: expected an integer from 0 to {COUNT_MAX}")
    return number
