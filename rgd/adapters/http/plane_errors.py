"""What can go wrong with a call that the plane answers, beside the errors of the gate (`errors`)."""

from collections.abc import Mapping
from typing import ClassVar, Final

from rgd.adapters.http.errors import STATUS as GATE_STATUS
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.errors import reply_to as gate_reply_to
from rgd.adapters.http.reply import Reply
from rgd.core.bounds import BOUNDS
from rgd.core.errors import GroupInUse, InvalidBacklog, PoliciesReadOnly
from rgd.errors import Unavailable
from rgd.ports.exchange import ExchangeError
from rgd.ports.log_door import CursorRefused, LogOff, NotExposed, UnknownCursor
from rgd.ports.usagelog import UsageLogError
from rgd.storage.errors import TierError


class Missing(CallError):
    """What the path or the query names does not exist, or nobody reported it lately."""


class ResourceGroupInUse(CallError):
    """Pulsar's admin API: the group cannot be deleted, something is attached to it."""


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


#: As in `errors`.
STATUS: Final[Mapping[type[BaseException], int]] = {
    **GATE_STATUS,
    InvalidBacklog: 400,
    UnknownCursor: 404,
    Missing: 404,
    CursorRefused: 409,
    GroupInUse: 409,
    ResourceGroupInUse: 409,
    PoliciesReadOnly: 409,
    PreconditionFailed: 412,
    BacklogsFull: 503,
    ExchangeError: 503,
    TierError: 503,
    Unavailable: 503,
    NotExposed: 403,
    LogOff: 404,
    UsageLogError: 503,
}


def reply_to(error: Exception) -> Reply | None:
    """The answer to an error; None for one that nobody foresaw."""
    return gate_reply_to(error, STATUS)
