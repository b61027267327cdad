"""What can go wrong with a call, and the status that says so.

Law: every error is answered as JSON `{"reason"}`, and only `CallError` and the errors in `STATUS`
have a status; anything else is a bug of ours, answered as 500 without a word
about the inside and logged. Being limited is an answer, not an
error: `answers` gives it its status.

The reasons name the field or setting and say what was expected; what they quote is cut (`shown`).
"""

import logging
from collections.abc import Mapping
from typing import ClassVar, Final

from rgd.adapters.http.reply import NO_HEADERS, Reply, json_reply
from rgd.adapters.http.shown import cut_reason
from rgd.core.errors import GroupInUse, InvalidBacklog, InvalidName, PoliciesReadOnly, UnknownGroup
from rgd.core.leases.model import TooManyLeases, UnknownLease
from rgd.errors import InternalError, RgdError, Unavailable
from rgd.ports.exchange import ExchangeError
from rgd.ports.log_door import CursorRefused, LogOff, NotExposed, UnknownCursor
from rgd.ports.usagelog import UsageLogError
from rgd.storage.errors import TierError

log = logging.getLogger(__name__)


class CallError(RgdError):
    """A call that cannot be done as it was asked.

    Args:
        status: of its answer.
        reason: the same in words.
        headers: that belong to the answer.
    """

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        self.status, self.headers = status, headers
        super().__init__(reason)


class BadBody(CallError):
    """The body, or what stands in place of one, does not say what it should; names the field and what was expected."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


class BodyTooLarge(CallError):
    """The body is over `http.body_max_bytes`."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"body: expected at most {most} bytes (http.body_max_bytes)")


class NotGoverned(CallError):
    """No limit applies to the name, and `http.ungoverned` is `deny`."""

    def __init__(self, name: str) -> None:
        reason = f"no limit applies to {name} and http.ungoverned is deny; attach it to a group"
        super().__init__(403, reason)


class Unauthorised(CallError):
    """The call needs another token; `why` is what metrics say."""

    def __init__(self, status: int, why: str, reason: str, challenge: str = "") -> None:
        self.why = why
        super().__init__(status, reason, {"WWW-Authenticate": f'Bearer realm="rgd"{challenge}'})


class Overloaded(CallError):
    """Too many calls of this kind are waiting."""

    transient: ClassVar[bool] = True

    def __init__(self, reason: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(503, reason, headers)


#: Of errors that are made elsewhere. The first class of an error's ancestry that stands here decides.
STATUS: Final[Mapping[type, int]] = {
    InvalidBacklog: 400,
    InvalidName: 400,
    NotExposed: 403,
    LogOff: 404,
    UnknownCursor: 404,
    UnknownGroup: 404,
    UnknownLease: 404,
    CursorRefused: 409,
    GroupInUse: 409,
    PoliciesReadOnly: 409,
    InternalError: 500,
    ExchangeError: 503,
    TierError: 503,
    TooManyLeases: 503,
    Unavailable: 503,
    UsageLogError: 503,
}

INTERNAL: Final = json_reply({"reason": "internal error"}, status=500)


def status_of(error: Exception) -> int | None:
    """The status of an error; None for one that nobody foresaw."""
    if isinstance(error, CallError):
        return error.status
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)


def reply_to(error: Exception, method: str = "", route: str = "") -> Reply:
    """The answer to an error; one that nobody foresaw is a bug, logged, and answered without its traceback."""
    status = status_of(error)
    if status is None:
        log.error("request failed: %s %s", method, route, exc_info=error)
        return INTERNAL
    headers = error.headers if isinstance(error, CallError) else NO_HEADERS
    if status == 503:
        headers = {"Retry-After": "1", **headers}
    return json_reply({"reason": cut_reason(str(error))}, status=status, headers=headers)
