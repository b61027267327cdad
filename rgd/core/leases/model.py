"""Requests for leases, their answers, and the limits of both."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from rgd.core.buckets.decision import Decision, Name
from rgd.core.errors import CoreError
from rgd.core.policies.model import Rate
from rgd.core.units import NS_PER_MS, NS_PER_S, Pair

#: Shortest and longest lifetime that a caller may ask for, and the one of a caller that does not.
TTL_MIN_NS: Final = 100 * NS_PER_MS
TTL_MAX_NS: Final = 60 * NS_PER_S
TTL_DEFAULT_NS: Final = 10 * NS_PER_S

#: A lease holds at most what its caller wants in so long, or in twice its refresh time if that is
#: longer: a caller that crashes loses no more.
HORIZON_NS: Final = NS_PER_S

#: Most renewals a second of all leases together, if each caller renews when it is told to.
RENEWALS_PER_S_MAX: Final = 2_000
#: Shortest time between two renewals that an answer advises.
REFRESH_MIN_NS: Final = 20 * NS_PER_MS


class UnknownLease(CoreError):
    """The lease has expired or was released, or another daemon gave it (HTTP 404)."""

    def __init__(self) -> None:
        super().__init__("lease: expected a live one; it has expired or was released")


class TooManyLeases(CoreError):
    """A limit of the table of leases is reached (HTTP 503); retry later."""

    transient = True

    def __init__(self, most: int, whose: str) -> None:
        super().__init__(f"leases: {whose} has {most} already, the most there may be")


class LeaseRequest(NamedTuple):
    """A request for a new lease."""

    name: Name
    #: Rates in Milli per second that the caller would use if nothing limited it.
    wants: Pair
    ttl_ns: int = TTL_DEFAULT_NS
    #: As in `rgd.core.buckets.decision.Request`.
    attempt: int = 1
    #: Who asks; bounds the number of its leases. Empty: unknown, so only the number of all is bounded.
    holder: str = ""


class Renewal(NamedTuple):
    """A request to renew a lease."""

    #: Whole units that the caller holds and has not spent.
    left: Pair
    #: None: as before.
    wants: Pair | None = None
    ttl_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """A lease was given or renewed."""

    lease_id: str
    #: Whole units taken for the caller by this answer; None if nothing limits the dimension.
    messages: int | None
    bytes: int | None
    expires_in_ms: int
    #: When to renew, if the caller spends what it wants.
    refresh_in_ms: int
    #: Rates in Milli per second that the caller may use while the daemon is away; None: unlimited.
    safe_messages: Rate
    safe_bytes: Rate
    #: The level that lowered the amounts and when there are more, as for a request.
    decision: Decision
