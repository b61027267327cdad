"""What can go wrong with a call that the plane answers, beside the errors of the gate (`errors`)."""

from rgd.adapters.http.errors import STATUS, CallError
from rgd.core.errors import GroupInUse, InvalidBacklog, PoliciesReadOnly
from rgd.errors import Unavailable
from rgd.ports.exchange import ExchangeError
from rgd.ports.log_door import CursorRefused, LogOff, NotExposed, UnknownCursor
from rgd.ports.usagelog import UsageLogError
from rgd.storage.errors import TierError


class Missing(CallError):
    """What the path or the query names does not exist, or nobody reported it lately."""

    def __init__(self, reason: str) -> None:
        super().__init__(404, reason)


class PreconditionFailed(CallError):
    """Pulsar's admin API: a name in the path is none, or names what does not exist."""

    def __init__(self, reason: str) -> None:
        super().__init__(412, reason)


STATUS.update(
    {
        InvalidBacklog: 400,
        NotExposed: 403,
        UnknownCursor: 404,
        LogOff: 404,
        CursorRefused: 409,
        GroupInUse: 409,
        PoliciesReadOnly: 409,
        ExchangeError: 503,
        TierError: 503,
        Unavailable: 503,
        UsageLogError: 503,
    }
)
