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

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from rgd.adapters.http.acquire import Acquire, name_of
from rgd.adapters.http.answers import (
    AcquireAnswer,
    Reason,
    TooLargeAnswer,
    UnknownAnswer,
    grant_headers,
)
from rgd.adapters.http.bodies import AcquireBody, Count, NamedBody, Ordinal
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.errors import BadBody, NotGoverned, reply_to
from rgd.adapters.http.reply import Call, Reply
from rgd.adapters.http.strict import QueryReader
from rgd.adapters.http.usual import GRANT_HEADERS, REFUSAL_HEADERS
from rgd.core.buckets.decision import Name
from rgd.core.buckets.headroom import Headroom
from rgd.ports.door import Scope

PATH: Final = "/v1/check"

#: The statuses of refusals: what `deny` replaces.
_REFUSALS: Final = frozenset((403, 413, 429, 503))


class CheckQuery(NamedBody, forbid_unknown_fields=True):
    """Whose request it is, as in `POST /v1/acquire`, and how it is answered."""

    messages: Count = 1
    bytes: Count = 0
    attempt: Ordinal | UnsetType = UNSET
    deny: (
        Annotated[
            Literal[403, 429, 503],
            Meta(title="The status of every refusal.", description="one of 403, 429, 503"),
        ]
        | UnsetType
    ) = UNSET
    headers: Annotated[
        Literal[0, 1], Meta(title="Grants have the RateLimit headers too.", description="0 or 1")
    ] = 0


_parameters = QueryReader(CheckQuery)

_REFUSED: Final = ResponseSpec(
    AcquireAnswer | TooLargeAnswer | UnknownAnswer | Reason,
    "It may not; or nothing says whether it may. The status of a refusal may be `deny`.",
    headers_if_any=(*REFUSAL_HEADERS, "WWW-Authenticate"),
)
_ANSWERS: Final = {
    200: ResponseSpec(AcquireAnswer, headers_if_any=(*GRANT_HEADERS, *REFUSAL_HEADERS[1:])),
    **dict.fromkeys((403, 413, 429, 503), _REFUSED),
}


class Check:
    """Asks on behalf of gateways.

    Args:
        acquire: decides.
        nearest: the limit nearest to refusing a name that was just granted.
    """

    def __init__(self, acquire: Acquire, nearest: Callable[[Name], Headroom | None]) -> None:
        self._reply_to = acquire.reply_to
        self._nearest = nearest

    @Endpoint("*", PATH, Scope.QUERY, _ANSWERS, (404,), query=(CheckQuery,))
    def answer(self, call: Call) -> Reply:
        """May a request pass? For nginx, Traefik and Envoy; names as query or X-Rgd-* headers."""
        return self._answer(call.query or _headers(call))

    @Endpoint("*", f"{PATH}/{{rest:path}}", Scope.QUERY, _ANSWERS, (404,))
    def answer_below(self, call: Call) -> Reply:
        """May a request pass? Names as X-Rgd-* headers; the rest of the path is the caller's."""
        return self._answer(_headers(call))

    def _answer(self, given: Mapping[str, str]) -> Reply:
        query = _parameters.read(given)
        if query.headers and query.group is not UNSET:
            raise BadBody("headers: expected tenant and namespace beside it, got group")
        asked = AcquireBody(
            **{name: getattr(query, name) for name in NamedBody.__struct_fields__},
            partial=False,
            attempt=query.attempt,
            messages=query.messages,
            bytes=query.bytes,
        )
        try:
            reply = self._reply_to(asked)
        except NotGoverned as refused:
            reply = reply_to(refused)
        if query.headers and reply.status == HTTPStatus.OK:
            return self._with_limit(reply, name_of(asked))
        if query.deny is UNSET or reply.status not in _REFUSALS:
            return reply
        return reply._replace(status=query.deny)

    def _with_limit(self, reply: Reply, name: Name) -> Reply:
        """A grant with the limit that is nearest to refusing, if one applies."""
        room = self._nearest(name)
        if room is None:
            return reply
        return reply._replace(headers={**reply.headers, **grant_headers(room, name[0])})


def _headers(call: Call) -> Mapping[str, str]:
    """The parameters that the headers say."""
    given: dict[str, str] = {}
    for header, value in call.headers.items():
        name = _PARAMETER_OF.get(header.lower())
        if name is None:
            continue
        if name in given:
            # The gateway's and its caller's: nobody knows which is which.
            raise BadBody(f"{_header(name)}: expected once, got it twice")
        given[name] = value
    return given


def _header(name: str) -> str:
    return f"X-Rgd-{name.capitalize()}"


_PARAMETER_OF: Final = {_header(name).lower(): name for name in _parameters.hints}
