"""Puts a policy snapshot in force as a whole, even if doing so raises.

Law: after each call the shares and the buckets hold the same snapshot: the new one or, while that
cannot be put in force, the previous one.

What changed is computed once, and slot ids, shares and buckets update only that. If it raises, all
groups are read again in slices, as if all had changed. If that raises too, the previous snapshot is
put back in the same way, and the new one is tried again after a pause.
"""

from rgd.core.bounds import SharingBounds
from rgd.core.broker.boundary import Boundary, Part
from rgd.core.broker.effects import Effect
from rgd.core.broker.sharing import Sharing
from rgd.core.broker.slot_ids import SlotIds
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.policies.snapshot import ALL_CHANGED, Changes, PolicySnapshot, changes_between
from rgd.core.units import Nanos


class PolicyChange:
    """Puts policies in force, and keeps a snapshot that could not be put in force yet."""

    def __init__(
        self,
        slots: SlotIds,
        sharing: Sharing,
        limiter: Limiter,
        boundary: Boundary,
        bounds: SharingBounds,
    ) -> None:
        self._bounds = bounds
        self._slots = slots
        self._sharing = sharing
        self._limiter = limiter
        self._boundary = boundary
        self._waiting: PolicySnapshot | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a snapshot is to be tried again (`retry`)."""
        return self._waiting is not None

    def put(self, snapshot: PolicySnapshot, now: Nanos) -> list[Effect]:
        """Put a snapshot in force.

        Returns:
            The faults of the attempts.

        Raises:
            InvariantBroken: neither the snapshot nor the previous one can be put in force; a bug.
        """
        before, self._waiting = self._sharing.snapshot, None
        changes = changes_between(before, snapshot, self._bounds.changes_max)
        faults = self._boundary.run(
            Part.SLOTS, lambda _: self._slots.set_groups(snapshot.groups, changes.groups), now
        )
        for attempt, differing in (
            (snapshot, changes),
            (snapshot, ALL_CHANGED),
            (before, ALL_CHANGED),
        ):
            fault = self._try(attempt, differing, now)
            if fault is None:
                self._waiting = None if attempt is snapshot else snapshot
                return faults
            faults.append(fault)
        raise InvariantBroken("neither the new policies nor those before can be put in force")

    def retry(self, now: Nanos) -> list[Effect]:
        """Try again to put the waiting snapshot in force, if there is one."""
        return [] if self._waiting is None else self.put(self._waiting, now)

    def validate(self) -> None:
        """Check that shares and buckets hold the same snapshot.

        Raises:
            InvariantBroken: they hold different ones; a bug.
        """
        if self._sharing.snapshot is not self._limiter.snapshot:
            raise InvariantBroken("shares and buckets have different policies in force")

    def _try(self, snapshot: PolicySnapshot, changes: Changes, now: Nanos) -> Effect | None:
        try:
            self._sharing.set_policies(snapshot, now, changes)
            self._limiter.set_policies(snapshot, now, changes)
        except InvariantBroken:
            raise
        except Exception as error:  # noqa: BLE001 -- a part's boundary (docs/decisions/0023)
            return self._boundary.fault(Part.POLICIES, error, now)
        return None
