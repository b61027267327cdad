"""What the gate's process is: the buckets, their answers, and what the plane tells of itself.

Law: it goes on answering while there is no plane, with the policies and rates that it has.
"""

import asyncio
from typing import Final

from rgd.app.answering import Answering
from rgd.app.clock import Clock
from rgd.app.containment import InternalErrors
from rgd.app.planes.gate_end import GateEnd
from rgd.app.process import Halted
from rgd.core.gate.local import LocalGate
from rgd.core.gate.policy_parts import Part, PolicyParts
from rgd.core.policies.model import LocalLimit
from rgd.core.policies.snapshot import Changes
from rgd.core.units import Nanos
from rgd.ports.answers import Health

#: Most groups of one note: each takes the plane some 60 us.
NOTE_GROUPS_MAX: Final = 64

_STARTING: Final = Health(ready=False, degraded=("starting: shares are not known yet",))


class GateProcess(Answering):
    """The gate; the plane calls the methods of the last part by name.

    Args:
        gate: has the buckets.
        clock: the time.
    """

    def __init__(self, gate: LocalGate, clock: Clock) -> None:
        self.gate = gate
        self.limiter, self.leases = gate.limiter, gate.leases
        self.now = clock.now
        self.errors = InternalErrors(clock.now, lambda reason: self.fail(Halted(reason)))
        self._loop = asyncio.get_running_loop()
        self._end: GateEnd | None = None
        self._parts = PolicyParts()
        self._health = _STARTING
        #: What the plane's process lacks just now, if it does not run.
        self.plane_trouble: str | None = None
        self._is_draining = self._is_noting = False
        #: Set when this daemon is to end, and why, if nobody asked for it.
        self.until = asyncio.Event()
        self.failure: Exception | None = None
        gate.news.on_news = self._note_soon

    # Of the door (rgd.ports.answers); decisions are in `Answering`.

    def health(self) -> Health:
        """What the plane said last, and whether there is one."""
        troubles = {"plane": self.plane_trouble, "internal errors": self.errors.trouble}
        notes = tuple(f"{what}: {why}" for what, why in troubles.items() if why)
        ready = self._health.ready and not self._is_draining
        return Health(ready, (*notes, *self._health.degraded))

    def drain(self) -> None:
        """Tell load balancers to go elsewhere."""
        self._is_draining = True

    # The plane's process.

    def attach(self, end: GateEnd) -> None:
        """A plane is there."""
        self._end, self._parts = end, PolicyParts()

    def detach(self, trouble: str) -> None:
        """The plane has gone."""
        self._end, self.plane_trouble = None, trouble

    def note(self, name: str, *args: object) -> None:
        """Have the plane's host do something, if there is one."""
        if self._end is not None:
            self._end.note(name, *args)

    def _note_soon(self) -> None:
        if not self._is_noting and self._end is not None:
            self._is_noting = True
            self._loop.call_soon(self._note)

    def _note(self) -> None:
        """Send the news as one note."""
        self._is_noting = False
        news, asked = self.gate.news, self.gate.asked
        unreported, backlogged = [*dict.fromkeys(news.unreported)], [*news.backlogged]
        news.unreported.clear()
        news.backlogged.clear()
        keys = asked[:NOTE_GROUPS_MAX]
        del asked[:NOTE_GROUPS_MAX]
        self.note("noted", unreported, backlogged, keys)
        if asked:
            self._note_soon()

    # What the plane calls.

    def take_policies(self, part: Part) -> None:
        """Take a part of policies."""
        self._parts.take(part)

    def put_policies(self, of_broker: LocalLimit, now: Nanos, changes: Changes | None) -> None:
        """Put the policies of all parts in force."""
        self.gate.set_policies(self._parts.snapshot(of_broker), now, changes)

    def say_health(self, health: Health) -> None:
        """What `/readyz` says from now on."""
        self._health, self.plane_trouble = health, None

    def fail(self, error: Exception) -> None:
        """This daemon has to end, with this error."""
        self.failure = self.failure or error
        self.until.set()
