"""A cache of the slot ids of the rows of the demand table.

Law: a cached slot id is the one that a look-up would find. A group loses its state or its slot id
only when policies change, so the cache is cleared when the limiter or sharing has another snapshot.
A row without a slot id is looked up each time.
"""

from collections.abc import Sequence

import numpy as np

from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.counters import Counters
from rgd.core.demand.table import DemandTable
from rgd.core.exchange.columns import Codes, Flags, Ints, kind_code
from rgd.core.exchange.group_index import NO_SLOT, grown


class RowSlots:
    """Slot id and kind, by row of the demand table."""

    def __init__(self, limiter: Limiter, sharing: Sharing, demand: DemandTable) -> None:
        self._limiter = limiter
        self._sharing = sharing
        self._demand = demand
        self._slot: Ints = np.full(64, NO_SLOT, np.int64)
        self._kind: Codes = np.zeros(64, np.uint8)
        #: The policy snapshots of limiter and sharing that the slot ids were found with.
        self._snapshots = (limiter.snapshot, sharing.snapshot)

    @property
    def are_outdated(self) -> bool:
        """Whether groups may have lost their state or their slot id since slot ids were found."""
        limiter, sharing = self._snapshots
        return limiter is not self._limiter.snapshot or sharing is not self._sharing.snapshot

    def find(self, rows: Ints, counters: Sequence[Counters]) -> Ints:
        """[rows] the slot id of each row, `NO_SLOT` for none; rows of deleted groups are freed."""
        self._make_room(int(rows.max(initial=-1)) + 1)
        slots = self._slot[rows]
        missing = np.flatnonzero(slots == NO_SLOT)
        for at in missing.tolist():
            slots[at] = self._look_up(counters[at])
        self._slot[rows[missing]] = slots[missing]
        return slots

    def is_missing(self, rows: Ints) -> Flags:
        """[rows] whether `find` has to look a row up."""
        self._make_room(int(rows.max(initial=-1)) + 1)
        is_missing: Flags = self._slot[rows] == NO_SLOT
        return is_missing

    def kinds(self, rows: Ints) -> Codes:
        """[rows] the kind of each row, which must have a slot id."""
        kinds: Codes = self._kind[rows]
        return kinds

    def _look_up(self, counters: Counters) -> int:
        state = state_of(counters)
        if self._limiter.state(state.key) is not state:
            self._demand.free(counters)
            return NO_SLOT
        self._kind[counters.row] = kind_code(state.key.kind)
        return self._sharing.slot_of(state.key)

    def _make_room(self, count: int) -> None:
        if self.are_outdated:
            self._slot[:] = NO_SLOT
            self._snapshots = (self._limiter.snapshot, self._sharing.snapshot)
        before = len(self._slot)
        if count > before:
            self._slot, self._kind = grown(self._slot, count), grown(self._kind, count)
            self._slot[before:] = NO_SLOT


def state_of(counters: Counters) -> GroupState:
    """The group that the counters belong to."""
    state = counters.state
    assert isinstance(state, GroupState), "counters are a group's"
    return state
