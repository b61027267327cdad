"""Runs the parts of a broker's work so that an exception in one does not stop the others.

Laws:

- An exception that a part raises becomes a `Fault` among the effects, and the other parts go on.
- A part that raised is not due again for one pause, because a permanent fault would keep the broker
  busy.
- A broken invariant is never contained, because nothing that is granted after it can be trusted.

`rgd.core.broker.recovery` repairs the state that a half-done part leaves behind.
`rgd.app.containment` logs and counts faults, and ends a process that has too many of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rgd.core.broker.effects import Effect, Fault
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
    MessageReceived,
    PoliciesChanged,
    ShardOpened,
    StateAnnounced,
    StockBrokersListed,
    StockReportReceived,
    Stopping,
    Woken,
)
from rgd.core.errors import InvariantBroken
from rgd.core.units import Nanos


class Part(StrEnum):
    """The parts of a broker's work, as `rgd_internal_errors_total{where}` names them."""

    #: Detects that the process was suspended.
    GAP = "gap"
    #: The handlers of events.
    MESSAGE = "message"
    POLICIES = "policies"
    DEMAND = "demand"
    STOPPING = "stopping"
    WOKEN = "woken"
    #: The work of a wake.
    NAME = "name"
    EXCHANGE_STATE = "exchange_state"
    MEMBERSHIP = "membership"
    #: Joins and leaves shards, and finds out which can be relied on.
    SHARDS = "shards"
    ROUND = "round"
    REPORTS = "reports"
    SHARING = "sharing"
    LIMITS = "limits"
    SLOTS = "slots"
    #: Takes reports of backlogs, and checks them.
    BACKLOG = "backlog"
    #: Takes reports of stock Pulsar brokers, and reports to them.
    STOCK = "stock"
    #: Repairs the state after a fault, and checks it (`rgd.core.broker.recovery`).
    RECOVERY = "recovery"
    AUDIT = "audit"


#: The part that the handler of each event belongs to.
EVENT_PARTS: Final[Mapping[type[Event], Part]] = MappingProxyType(
    {
        Woken: Part.WOKEN,
        MessageReceived: Part.MESSAGE,
        ShardOpened: Part.SHARDS,
        StateAnnounced: Part.MESSAGE,
        PoliciesChanged: Part.POLICIES,
        BacklogsReported: Part.BACKLOG,
        BacklogsWithdrawn: Part.BACKLOG,
        BacklogEvicted: Part.BACKLOG,
        BacklogCheckAsked: Part.BACKLOG,
        StockReportReceived: Part.STOCK,
        StockBrokersListed: Part.STOCK,
        Stopping: Part.STOPPING,
    }
)

#: Parts that change only what is advertised; and recovery, which is repeated as it was.
REPORTING_PARTS: Final = frozenset(
    {
        Part.ROUND,
        Part.REPORTS,
        Part.DEMAND,
        Part.LIMITS,
        Part.STOPPING,
        Part.BACKLOG,
        Part.RECOVERY,
    }
)


class Boundary:
    """Contains the exceptions of parts.

    Args:
        pause_ns: how long a part that raised pauses, in nanoseconds.
    """

    def __init__(self, pause_ns: int) -> None:
        self._pause_ns = pause_ns
        #: When each part that raised may run again.
        self._resumes_at: dict[Part, Nanos] = {}
        #: Parts that raised since the last recovery, which clears this.
        self.faulty: set[Part] = set()

    @property
    def is_on_hold(self) -> bool:
        """Whether any part pauses because it raised."""
        return bool(self._resumes_at)

    def run(
        self,
        part: Part,
        work: Callable[[Nanos], Iterable[Effect] | None],
        now: Nanos,
        *,
        pauses: bool = True,
    ) -> list[Effect]:
        """Do a part's work, unless the part pauses.

        Args:
            part: the part that the work belongs to.
            work: the work; called with `now`.
            now: the current time.
            pauses: whether the part pauses if it raises; False where it makes progress even then.

        Returns:
            The effects of the work, or its fault.

        Raises:
            InvariantBroken: the work found a broken invariant; a bug.
        """
        if self._resumes_at and self.waits(part, now):
            return []
        try:
            return [*(work(now) or ())]
        except InvariantBroken:
            raise
        except Exception as error:  # noqa: BLE001 -- a part's boundary (docs/decisions/0023)
            return [self.fault(part, error, now, pauses=pauses)]

    def fault(self, part: Part, error: Exception, now: Nanos, *, pauses: bool = True) -> Fault:
        """Pause a part because it raised; returns the fault."""
        self.faulty.add(part)
        if pauses:
            self._resumes_at[part] = Nanos(now + self._pause_ns)
        return Fault(part, error)

    def put_off(self, due: Iterable[tuple[Part, Nanos | None]]) -> Iterator[Nanos]:
        """Yield when each part's work can be done: after its own pause and that of `WOKEN`.

        Args:
            due: each part and when its work is due; None where nothing is due.
        """
        for part, at in due:
            if at is not None:
                woken_at = self._resumes_at.get(Part.WOKEN, at)
                yield max(at, woken_at, self._resumes_at.get(part, at))

    def resume(self, now: Nanos) -> None:
        """End the pauses that are over; some parts, such as messages, have no due time to do so."""
        if self._resumes_at:
            self._resumes_at = {part: at for part, at in self._resumes_at.items() if at > now}

    def waits(self, part: Part, now: Nanos) -> bool:
        """Whether a part pauses because it raised."""
        return now < self._resumes_at.get(part, now)
