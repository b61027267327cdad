"""What can go wrong with a call, and the one table from an error to its status.

Law: every error is answered as JSON `{"reason"}`, and only the errors below
have a status; anything else is a bug of ours, answered as 500 without a word
about the inside and logged by `server`. Being limited is an answer, not an
error: `answers` gives it its status.

The reasons name the field or setting and say what was expected; what they quote is cut (`shown`).
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from aiohttp import web

from rgd.adapters.http.connection_limits import Refused
from rgd.adapters.http.reply import NO_HEADERS, Reply, json_reply
from rgd.adapters.http.shown import cut_reason
from rgd.core.bounds import BOUNDS
from rgd.core.errors import GroupInUse, InvalidBacklog, InvalidName, PoliciesReadOnly, UnknownGroup
from rgd.core.leases.model import UnknownLease
from rgd.errors import InternalError, RgdError, Unavailable
from rgd.ports.exchange import ExchangeError
from rgd.ports.log_door import CursorRefused, LogOff, NotExposed, UnknownCursor
from rgd.ports.usagelog import UsageLogError
from rgd.storage.errors import TierError

_REALM: Final = 'Bearer realm="rgd"'


class CallError(RgdError):
    """A call that cannot be done as it was asked."""

    #: Headers that belong to the answer.
    headers: Mapping[str, str] = NO_HEADERS


class BadBody(CallError):
    """The body does not say what it should; names the field and what was expected."""


class BadTarget(CallError):
    """The path or the query is no text."""

    def __init__(self, got: str) -> None:
        super().__init__(f"path and query: expected percent-encoded UTF-8, got {got}")


class BodyTooLarge(CallError):
    """The body is over `http.body_max_bytes`."""

    def __init__(self, body_max_bytes: int) -> None:
        super().__init__(f"body: expected at most {body_max_bytes} bytes (http.body_max_bytes)")


class BatchTooLarge(CallError):
    """The array is over `http.batch_max`."""

    def __init__(self, batch_max: int) -> None:
        super().__init__(f"body: expected an array of at most {batch_max} items (http.batch_max)")


class BodyTooSlow(CallError):
    """The body did not come in time."""

    transient: ClassVar[bool] = True

    def __init__(self, seconds: float) -> None:
        super().__init__(f"body: expected within {seconds:g} seconds of its head")


class NotGoverned(CallError):
    """No limit applies to the name, and `http.ungoverned` is `deny`."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no limit applies to {name} and http.ungoverned is deny; attach it to a group"
        )


class TokenMissing(CallError):
    """The call needs a token and has none that is known."""

    def __init__(self, *, sent: bool) -> None:
        self.why = "unknown_token" if sent else "no_token"
        if sent:
            super().__init__("the bearer token is not known")
            self.headers = {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}
        else:
            super().__init__("expected a bearer token: Authorization: Bearer TOKEN")
            self.headers = {"WWW-Authenticate": _REALM}


class ScopeMissing(CallError):
    """The token is known and may not do this."""

    why = "scope"

    def __init__(self, scope: str) -> None:
        super().__init__(f"this call needs a token with the scope {scope}")
        self.headers = {
            "WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{scope}"'
        }


class Overloaded(CallError):
    """Too many calls of this kind are waiting."""

    transient: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.headers = {"Retry-After": "1"}


class TooManyConnections(CallError):
    """The connection is beyond a limit, and asks for more than probes."""

    transient: ClassVar[bool] = True

    def __init__(self, beyond: Refused | None) -> None:
        setting = beyond or Refused.CONNECTIONS
        super().__init__(
            f"too many connections (http.{setting}); close some, or come back; "
            "at http.probe_listen only probes are answered"
        )
        self.headers = {"Retry-After": "1", "Connection": "close"}


class ResourceGroupMissing(CallError):
    """Pulsar's admin API: there is no such group."""


class ResourceGroupInUse(CallError):
    """Pulsar's admin API: the group cannot be deleted, something is attached to it."""


class NamespaceMissing(CallError):
    """Pulsar's admin API: nobody ever named the namespace."""


class TenantMissing(CallError):
    """Pulsar's admin API: nothing of the tenant is named."""


class UnknownBacklogType(CallError):
    """Pulsar's admin API: the query names no type of backlog quota."""


class PreconditionFailed(CallError):
    """Pulsar's admin API: a name in the path is none, or names what does not exist."""


class BacklogsFull(CallError):
    """The daemon has no room for the backlog of a further topic."""

    transient: ClassVar[bool] = True

    def __init__(self) -> None:
        most = BOUNDS.backlog
        super().__init__(
            f"backlogs: expected at most {most.topics_max} topics with {most.subscriptions_max} "
            f"subscriptions and {most.ledgers_max} ledgers; push fewer of them to this daemon"
        )


class BacklogMissing(CallError):
    """Nobody reported the backlog of the topic, or not lately."""


#: The first class of an error's ancestry that stands here decides.
STATUS: Final[Mapping[type[BaseException], int]] = {
    BadBody: 400,
    BadTarget: 400,
    InvalidName: 400,
    InvalidBacklog: 400,
    web.RequestPayloadError: 400,
    TokenMissing: 401,
    ScopeMissing: 403,
    NotGoverned: 403,
    UnknownGroup: 404,
    UnknownCursor: 404,
    UnknownLease: 404,
    BacklogMissing: 404,
    NamespaceMissing: 404,
    TenantMissing: 404,
    UnknownBacklogType: 404,
    ResourceGroupMissing: 404,
    BodyTooSlow: 408,
    CursorRefused: 409,
    GroupInUse: 409,
    ResourceGroupInUse: 409,
    PoliciesReadOnly: 409,
    PreconditionFailed: 412,
    BodyTooLarge: 413,
    BatchTooLarge: 413,
    Overloaded: 503,
    BacklogsFull: 503,
    InternalError: 500,
    TooManyConnections: 503,
    ExchangeError: 503,
    TierError: 503,
    Unavailable: 503,
    NotExposed: 403,
    LogOff: 404,
    UsageLogError: 503,
}

INTERNAL: Final = json_reply({"reason": "internal error"}, status=500)

_LIBRARY_REASONS: Final = {
    404: "no such path; GET /openapi.json lists them",
    405: "this path has no such method; the header Allow lists them",
    417: "Expect: expected 100-continue",
}


def status_of(error: Exception) -> int | None:
    """The status of an error; None for one that nobody foresaw."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)


def reply_to(error: Exception) -> Reply | None:
    """The answer to an error; None for one that nobody foresaw."""
    if isinstance(error, web.HTTPException):
        return _library_reply(error)
    status = status_of(error)
    if status is None:
        return None
    if isinstance(error, web.RequestPayloadError):
        return json_reply({"reason": "body: malformed transfer encoding"}, status=status)
    headers = error.headers if isinstance(error, CallError) else NO_HEADERS
    return json_reply({"reason": cut_reason(str(error))}, status=status, headers=headers)


def _library_reply(error: web.HTTPException) -> Reply:
    """What aiohttp itself refuses: an unknown path, a wrong method, a strange Expect."""
    headers = NO_HEADERS
    if isinstance(error, web.HTTPMethodNotAllowed):
        headers = {"Allow": ", ".join(sorted(error.allowed_methods))}
    reason = _LIBRARY_REASONS.get(error.status, error.reason)
    return json_reply({"reason": reason}, status=error.status, headers=headers)
