"""A member whose gate and plane are apart: the plane may be lost, and another one takes over with the same gate.

Law: the gate goes on answering as it is; nothing of the plane survives but what the gate has of it. What both say to each
other arrives at once, and all of it: what is lost with a plane are notes and the round that was open.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, AlarmCode, Effect
from rgd.core.broker.events import Event, GroupsAsked, GroupsResumed, PoliciesChanged
from rgd.core.broker.parts import gate_of
from rgd.core.broker.settings import BrokerSettings
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.units import Nanos
from sim.member import CoreBrain
from sim.shared_work import SharedWork

#: Groups of one event.
_GROUPS_MAX: Final = 500


class ApartBrain(CoreBrain):
    """The daemon's core with a gate that outlives its plane."""

    def __init__(
        self, settings: BrokerSettings, now: Nanos, shared: SharedWork | None = None
    ) -> None:
        self.gate = gate_of(settings)
        super().__init__(settings, now, shared, self.gate)
        #: Whether a plane is there, and how many were lost.
        self.has_plane = True
        self.losses = 0

    @property
    def wake_at(self) -> Nanos | None:
        if not self.has_plane:
            return None
        return Nanos(0) if self.gate.asked else self.broker.wake_at

    def handle(self, event: Event) -> Sequence[Effect]:
        if not self.has_plane:
            return ()
        effects: tuple[Effect, ...] = ()
        if self.gate.asked:
            asked = tuple(self.gate.asked)
            self.gate.asked.clear()
            effects = self.broker.handle(GroupsAsked(event.now, asked))
        return (*effects, *self.broker.handle(event))

    def lose_plane(self) -> None:
        """End the plane without a word."""
        self.has_plane = False
        self.losses += 1
        while self.gate.forget_slots():
            pass

    def isolate(self, now: Nanos) -> Alarm | None:
        """Do without shares, if no plane has told any since the last one was lost."""
        if self.gate.is_led:
            return None
        self.gate.isolate(self.broker.settings.on_isolation, now)
        # So that whoever watches shares sees them now, and not with each group's next request.
        self._groups(now)
        return Alarm(AlarmCode.ISOLATED)

    def take_over(
        self, remembered: Collection[str], snapshot: PolicySnapshot, now: Nanos
    ) -> Sequence[Effect]:
        """Begin another plane; its start is yet to come."""
        settings = replace(self.broker.settings, stored_peers=frozenset(remembered))
        broker = Broker(settings, now, self.gate, self.gate.sequences)
        self.put(broker)
        self.has_plane = True
        # As the daemon does: it begins before its policies are loaded.
        effects = [*broker.handle(PoliciesChanged(now, EMPTY_SNAPSHOT, known=False))]
        effects += broker.handle(PoliciesChanged(now, snapshot))
        groups = self._groups(now)
        for begin in range(0, len(groups), _GROUPS_MAX):
            some = tuple(groups[begin : begin + _GROUPS_MAX])
            effects += broker.handle(GroupsResumed(now, some))
        return effects

    def validate(self) -> None:
        if self.has_plane:
            self.broker.validate()

    def shares(self, key: GroupKey) -> Mapping[str, Rates] | None:
        return super().shares(key) if self.has_plane else None

    def _groups(self, now: Nanos) -> list[tuple[GroupKey, Rates]]:
        groups: list[tuple[GroupKey, Rates]] = []
        while some := self.gate.groups_in_use(len(groups), _GROUPS_MAX, now):
            groups += some
        return groups
