"""What can go wrong with a call that the gate answers, and the table from an error to its status.

Law: every error is answered as JSON `{"reason"}`, and only the errors below and those of `plane_errors`
have a status; anything else is a bug of ours, answered as 500 without a word
about the inside and logged by `gate`. Being limited is an answer, not an
error: `answers` gives it its status.

The reasons name the field or setting and say what was expected; what they quote is cut (`shown`).
"""

from collections.abc import Collection, Mapping
from typing import ClassVar, Final

from rgd.adapters.http.connection_limits import Refused
from rgd.adapters.http.reply import NO_HEADERS, Reply, json_reply
from rgd.adapters.http.shown import cut_reason
from rgd.core.errors import InvalidName, UnknownGroup
from rgd.core.leases.model import UnknownLease
from rgd.errors import InternalError, RgdError

_REALM: Final = 'Bearer realm="rgd"'


class CallError(RgdError):
    """A call that cannot be done as it was asked."""

    #: Headers that belong to the answer.
    headers: Mapping[str, str] = NO_HEADERS


class Malformed(CallError):
    """The bytes are no request; says what is wrong with them."""

    def __init__(self, why: str) -> None:
        super().__init__(f"malformed request: {why}")


class HeadTooLong(CallError):
    """The request line or the headers are longer than anybody needs."""


class NoSuchPath(CallError):
    """No call has the path."""

    def __init__(self) -> None:
        super().__init__("no such path; GET /openapi.json lists them")


class NoSuchMethod(CallError):
    """The path has other methods."""

    def __init__(self, allowed: Collection[str]) -> None:
        super().__init__("this path has no such method; the header Allow lists them")
        self.headers = {"Allow": ", ".join(sorted(allowed))}


class BadExpectation(CallError):
    """The header `Expect` asks for something that there is not."""

    def __init__(self) -> None:
        super().__init__("Expect: expected 100-continue")


class BadBody(CallError):
    """The body does not say what it should; names the field and what was expected."""


class BadTarget(CallError):
    """The path or the query is no text."""

    def __init__(self, got: str, expected: str = "percent-encoded UTF-8") -> None:
        super().__init__(f"path and query: expected {expected}, got {got}")


class BodyMalformed(BadBody):
    """What frames the chunks of a body is wrong."""

    def __init__(self, what: str = "malformed transfer encoding") -> None:
        super().__init__(f"body: {what}")


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


class TooManyConnections(CallError):
    """The connection is beyond a limit, and asks for more than probes."""

    transient: ClassVar[bool] = True

    def __init__(self, beyond: Refused | None) -> None:
        setting = beyond or Refused.CONNECTIONS
        super().__init__(
            f"too many connections (http.{setting}); close some, or come back; "
            "at http.probe_listen only probes are answered"
        )
        self.headers = {"Connection": "close"}


#: The first class of an error's ancestry that stands here decides.
STATUS: Final[Mapping[type[BaseException], int]] = {
    Malformed: 400,
    BadBody: 400,
    BadTarget: 400,
    InvalidName: 400,
    TokenMissing: 401,
    ScopeMissing: 403,
    NotGoverned: 403,
    NoSuchPath: 404,
    UnknownGroup: 404,
    UnknownLease: 404,
    NoSuchMethod: 405,
    BodyTooSlow: 408,
    BodyTooLarge: 413,
    BatchTooLarge: 413,
    BadExpectation: 417,
    HeadTooLong: 431,
    Overloaded: 503,
    InternalError: 500,
    TooManyConnections: 503,
}

INTERNAL: Final = json_reply({"reason": "internal error"}, status=500)

Statuses = Mapping[type[BaseException], int]


def status_of(error: Exception, statuses: Statuses = STATUS) -> int | None:
    """The status of an error; None for one that nobody foresaw."""
    return next((statuses[kind] for kind in type(error).__mro__ if kind in statuses), None)


def reply_to(error: Exception, statuses: Statuses = STATUS) -> Reply | None:
    """The answer to an error; None for one that nobody foresaw."""
    status = status_of(error, statuses)
    if status is None:
        return None
    headers = error.headers if isinstance(error, CallError) else NO_HEADERS
    if status == 503:
        headers = {"Retry-After": "1", **headers}
    return json_reply({"reason": cut_reason(str(error))}, status=status, headers=headers)
