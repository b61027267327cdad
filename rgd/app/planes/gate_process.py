"""What the gate's process is: the buckets, their answers, and what the plane tells of itself.

Law: it goes on answering while there is no plane, or one that says nothing, with the policies and rates that it has; as long
as a broker that hears nothing of the exchange does, counted from the plane's last word. Then `exchange.on_isolation` says what
it grants, until a plane tells rates again.
"""

import asyncio
from dataclasses import replace
from typing import Final

import structlog

from rgd.app.answering import Answering
from rgd.app.clock import Clock
from rgd.app.containment import InternalErrors
from rgd.app.planes.gate_end import GateEnd
from rgd.app.process import Halted
from rgd.core.gate.local import LocalGate
from rgd.core.gate.policy_parts import Part, PolicyParts
from rgd.core.policies.model import LocalLimit, OnIsolation
from rgd.core.policies.snapshot import Changes
from rgd.core.units import Nanos
from rgd.ports.answers import Health

#: Most groups of one note: 64 take the plane some 2 ms.
NOTE_GROUPS_MAX: Final = 64

#: How often it is looked whether there is something to do.
KEEP_UP_S: Final = 0.05

_log = structlog.get_logger("rgd.daemon")

_STARTING: Final = Health(ready=False, degraded=("starting: shares are not known yet",))


class GateProcess(Answering):
    """The gate; the plane calls the methods of the last part by name.

    Args:
        gate: has the buckets.
        clock: the time.
        until: set when this daemon is to end.
        on_isolation: what to grant after the hold.
        hold_ns: how long rates hold without a word of a plane.
    """

    def __init__(
        self,
        gate: LocalGate,
        clock: Clock,
        until: asyncio.Event,
        on_isolation: OnIsolation,
        hold_ns: int,
    ) -> None:
        self.gate = gate
        self.limiter, self.leases = gate, gate.leases
        self.now = clock.now
        self.errors = InternalErrors(clock.now, lambda reason: self.fail(Halted(reason)))
        self._loop = asyncio.get_running_loop()
        self._on_isolation = on_isolation
        self._hold_ns = hold_ns
        #: When the plane that told rates said something last; None before the first one told any.
        self._heard_at: Nanos | None = None
        #: Set once a plane agrees and logs: from then on one that ends is replaced.
        self.up = asyncio.Event()
        self._end: GateEnd | None = None
        #: Whether a plane put policies in force, and whether the one that is there did.
        self.had_plane = self._has_policies = False
        self._parts = PolicyParts()
        self._health = _STARTING
        #: Whether the last plane that has gone was ready.
        self._was_ready = False
        #: What the plane's process lacks just now, if it does not run.
        self.plane_trouble: str | None = None
        self._is_draining = self._is_noting = False
        self.until = until
        #: Why this daemon has to end, if nobody asked for it.
        self.failure: Exception | None = None
        gate.news.on_news = self._note_soon

    # Of the door (rgd.ports.answers); decisions are in `Answering`.

    def health(self) -> Health:
        """What the plane said last, and whether there is one."""
        troubles = {"plane": self.plane_trouble, "internal errors": self.errors.trouble}
        notes = tuple(f"{what}: {why}" for what, why in troubles.items() if why)
        ready = self._health.ready and not self._is_draining
        return Health(ready, (*notes, *self._health.degraded))

    @property
    def has_plane(self) -> bool:
        """Whether a plane's process runs."""
        return self._end is not None

    def drain(self) -> None:
        """Tell load balancers to go elsewhere."""
        self._is_draining = True

    # The plane's process.

    def attach(self, end: GateEnd) -> None:
        """A plane is there."""
        while self.gate.forget_slots():
            pass
        self._end, self._parts, self._has_policies = end, PolicyParts(), False

    def detach(self, trouble: str) -> None:
        """The plane has gone."""
        self._hear()
        self._end, self.plane_trouble, self._was_ready = None, trouble, self._health.ready
        self._forget()

    def _forget(self) -> None:
        if self._end is None and self.gate.forget_slots():
            self._loop.call_soon(self._forget)

    def _hear(self) -> None:
        if self._end is not None and self.gate.is_led:
            self._heard_at = self._end.received_at

    def _isolate_if_silent(self, now: Nanos) -> None:
        """Grant as `exchange.on_isolation` says once rates hold no longer."""
        self._hear()
        if self.gate.isolation is not None or self._heard_at is None:
            return
        if now - self._heard_at >= self._hold_ns:
            _log.warning("no plane has told shares", shares=self._on_isolation.value)
            self.gate.isolate(self._on_isolation, now)
            self.plane_trouble = self.plane_trouble or "its process says nothing"
            # One that goes on again has to tell them anew.
            self.note("isolated")

    async def keep_up(self) -> None:
        """Do what changes, rounds and silence leave to do, a slice a turn."""
        while True:
            now = self.now()
            self._isolate_if_silent(now)
            self.gate.work(now)
            await asyncio.sleep(0 if self.gate.is_behind else KEEP_UP_S)

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
        # Which changes those are of another plane's policies it cannot know.
        changes = changes if self._has_policies else None
        self.had_plane = self._has_policies = True
        self.gate.set_policies(self._parts.snapshot(of_broker), now, changes)

    def say_health(self, health: Health) -> None:
        """What `/readyz` says from now on; while a plane takes over, its gate has the shares of the one before."""
        takes_over = self._was_ready and not self.gate.is_led
        self._health = replace(health, ready=health.ready or takes_over)
        if self._end is not None:
            self._end.is_starting = False
        self.plane_trouble = None

    def is_up(self) -> None:
        """The plane agrees with the other brokers, and logs."""
        self.up.set()

    def cannot_go_on(self, error: Exception) -> None:
        """The plane ends with this error; so does the daemon, unless another plane may do better."""
        if isinstance(error, Halted) or not self.up.is_set():
            self.fail(error)
        else:
            _log.error("the plane cannot go on", reason=str(error))

    def fail(self, error: Exception) -> None:
        """This daemon has to end, with this error."""
        self.failure = self.failure or error
        self.until.set()
