"""The slot ids of the rows of the table of demand, found once for each row while the policies stay.

Law: a place that is kept is the one that a look-up would find. A group loses its state or its slot only when
policies change, so what was found counts while the same policies are in force, for the limiter and for sharing.
A row without a slot is looked up again each time.
"""

from collections.abc import Sequence

import numpy as np

from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.counters import Counters
from rgd.core.demand.table import DemandTable
from rgd.core.exchange.columns import Codes, Ints, kind_code
from rgd.core.exchange.group_index import NO_PLACE, grown


class RowPlaces:
    """Slot id and kind by row of the table."""

    def __init__(self, limiter: Limiter, sharing: Sharing, demand: DemandTable) -> None:
        self._limiter = limiter
        self._sharing = sharing
        self._demand = demand
        self._place: Ints = np.full(64, NO_PLACE, np.int64)
        self._kind: Codes = np.zeros(64, np.uint8)
        #: The policies that the places were found with.
        self._books = (limiter.book, sharing.book)

    def find(self, rows: Ints, counters: Sequence[Counters]) -> Ints:
        """[rows] the slot of each row, `NO_PLACE` where it has none; rows of groups that are gone are freed."""
        self._make_room(int(rows.max(initial=-1)) + 1)
        places = self._place[rows]
        missing = np.flatnonzero(places == NO_PLACE)
        for at in missing.tolist():
            places[at] = self._look_up(counters[at])
        self._place[rows[missing]] = places[missing]
        return places

    def kinds(self, rows: Ints) -> Codes:
        """[rows] the kind of each row that has a slot."""
        kinds: Codes = self._kind[rows]
        return kinds

    def _look_up(self, counters: Counters) -> int:
        state = state_of(counters)
        if self._limiter.state(state.key) is not state:
            self._demand.free(counters)
            return NO_PLACE
        self._kind[counters.row] = kind_code(state.key.kind)
        return self._sharing.slot_of(state.key)

    def _make_room(self, count: int) -> None:
        limiter, sharing = self._books
        if limiter is not self._limiter.book or sharing is not self._sharing.book:
            self._place[:] = NO_PLACE
            self._books = (self._limiter.book, self._sharing.book)
        before = len(self._place)
        if count > before:
            self._place, self._kind = grown(self._place, count), grown(self._kind, count)
            self._place[before:] = NO_PLACE


def state_of(counters: Counters) -> GroupState:
    """The group that counters belong to."""
    state = counters.state
    assert isinstance(state, GroupState), "counters are a group's"
    return state
