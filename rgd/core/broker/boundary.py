"""Runs the parts of a broker's work so that an exception in one stops neither the others nor the broker.

Laws: whatever a part raises becomes a `Fault` among the effects, and the other parts go on; a part that
raised is not due again before one pause is over, so that a fault that stays cannot keep the broker
busy; and a broken invariant is never contained, because nothing that is granted after it can be trusted.

What a half-done part leaves behind is put right by `rgd.core.broker.recovery`. Who logs and counts
faults, and ends a process that has too many of them, is `rgd.app.containment`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rgd.core.broker.effects import Effect, Fault
from rgd.core.broker.events import (
    DemandUnreported,
    Event,
    MessageReceived,
    PoliciesChanged,
    StateAnnounced,
    Stopping,
    Woken,
)
from rgd.core.errors import InvariantBroken
from rgd.core.units import Nanos


class Part(StrEnum):
    """The parts of a broker's work, as `rgd_internal_errors_total{where}` names them."""

    #: Noticing that the process stood still.
    GAP = "gap"
    #: An event's own handler.
    MESSAGE = "message"
    POLICIES = "policies"
    DEMAND = "demand"
    STOPPING = "stopping"
    WOKEN = "woken"
    #: What is done when a wake is due.
    NAME = "name"
    STANDING = "exchange_state"
    MEMBERSHIP = "membership"
    ROUND = "round"
    REPORTS = "reports"
    SHARING = "sharing"
    LIMITS = "limits"
    SLOTS = "slots"
    #: Putting right what a fault left behind, and checking that it is right (`rgd.core.broker.recovery`).
    RECOVERY = "recovery"
    AUDIT = "audit"


#: The part that an event's own handler is.
EVENT_PARTS: Final[Mapping[type[Event], Part]] = MappingProxyType(
    {
        Woken: Part.WOKEN,
        MessageReceived: Part.MESSAGE,
        StateAnnounced: Part.MESSAGE,
        PoliciesChanged: Part.POLICIES,
        DemandUnreported: Part.DEMAND,
        Stopping: Part.STOPPING,
    }
)

#: Parts that change nothing but what is told.
REPORTING_PARTS: Final = frozenset(
    {Part.ROUND, Part.REPORTS, Part.DEMAND, Part.LIMITS, Part.STOPPING}
)

#: What is due at the times that a broker says (`Broker.wake_at`), in its order.
DUE_PARTS: Final = (
    Part.ROUND,
    Part.REPORTS,
    Part.DEMAND,
    *(Part.REPORTS,) * 3,
    Part.NAME,
    Part.MEMBERSHIP,
    Part.SHARING,
    Part.STANDING,
    Part.LIMITS,
    Part.SLOTS,
    Part.AUDIT,
    Part.RECOVERY,
    Part.POLICIES,
)


class Boundary:
    """Contains what parts raise.

    Args:
        pause_ns: how long a part that raised is not due again.
    """

    def __init__(self, pause_ns: int) -> None:
        self._pause_ns = pause_ns
        #: When a part that raised may go on.
        self._resumes_at: dict[Part, Nanos] = {}

    @property
    def is_on_hold(self) -> bool:
        """Whether a part waits because it raised."""
        return bool(self._resumes_at)

    def run(
        self,
        part: Part,
        work: Callable[[Nanos], Iterable[Effect] | None],
        now: Nanos,
        *,
        pauses: bool = True,
    ) -> list[Effect]:
        """Do a part's work, unless it waits; its effects, or its fault.

        Args:
            part: whose work it is.
            work: what to do.
            now: the moment.
            pauses: whether the part waits if it raises; False where it makes progress all the same.
        """
        if self.waits(part, now):
            return []
        try:
            return [*(work(now) or ())]
        except InvariantBroken:
            raise
        except Exception as error:  # noqa: BLE001 -- a part's boundary (docs/decisions/0023)
            return [self.fault(part, error, now) if pauses else Fault(part, error)]

    def fault(self, part: Part, error: Exception, now: Nanos) -> Fault:
        """Have a part wait because it raised."""
        self._resumes_at[part] = Nanos(now + self._pause_ns)
        return Fault(part, error)

    def put_off(self, due: Iterable[tuple[Part, Nanos | None]]) -> Iterator[Nanos]:
        """When what is due can be done: not while its part waits, nor while all that wakes do waits.

        Args:
            due: when the work of a part is due, None where nothing is.
        """
        for part, at in due:
            if at is not None:
                woken_at = self._resumes_at.get(Part.WOKEN, at)
                yield max(at, woken_at, self._resumes_at.get(part, at))

    def resume(self, now: Nanos) -> None:
        """Let the parts go on whose pause is over; of some, such as messages, nothing is ever due."""
        if self._resumes_at:
            self._resumes_at = {part: at for part, at in self._resumes_at.items() if at > now}

    def waits(self, part: Part, now: Nanos) -> bool:
        """Whether a part waits because it raised."""
        return now < self._resumes_at.get(part, now)
