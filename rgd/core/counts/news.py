"""The gate's end of the link to the plane: which rows have news, and their pages.

The plane asks, and the gate answers. Rows are known by slot id, which the plane gives; a group that has none has no
news. Nothing here is called by a request but `call_out`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from struct import pack as pack_numbers
from typing import Protocol

from rgd.core.counts.counters import NO_SLOT, Counters
from rgd.core.counts.page import OpenedWindow, Page, pack


class Counted(Protocol):
    """A group in a kind, as far as it is counted."""

    counters: Counters
    #: Whether this broker has reported demand for the group to its peers.
    reported: bool

    def refused_totals(self) -> list[int]:
        """Messages refused by each level since the start, then bytes, bounded to int64."""
        ...


class News:
    """What the gate keeps for the plane until it is collected.

    Args:
        counted: the groups by slot id.
    """

    def __init__(self, counted: Mapping[int, Counted]) -> None:
        self._counted = counted
        #: The counters that requests added to since they were collected; the first entry of each counts.
        self.touched: deque[Counters] = deque()
        #: The slot ids of groups that refused work and that no report has shown.
        self.unreported: list[int] = []
        #: The slot ids of groups of which backlogs refused work that the usage log does not have; it is no demand.
        self.backlogged: set[int] = set()
        #: The slot ids of groups that no longer exist: what follows of them is another group's, or counted anew.
        self.dropped: list[int] = []
        #: Called when there is something again, so that the plane's next wake is planned.
        self.on_news: Callable[[], None] = _nobody_listens

    @property
    def has_touched(self) -> bool:
        """Whether `collect` would give rows."""
        return bool(self.touched)

    def touched_count(self) -> int:
        """How many rows were touched since they were collected."""
        return len(self.touched)

    def collect(self, count: int) -> Page:
        """The first rows that were touched, at most `count`; they are touched no more."""
        collected = []
        for _ in range(min(count, len(self.touched))):
            one = self.touched.popleft()
            # A group without a slot id stays touched, and has its news once it gets one.
            if one.slot != NO_SLOT and one.is_touched:
                one.is_touched = one.is_changed = False
                collected.append(one)
        return pack(collected)

    def changed(self, slots: Iterable[int]) -> Page:
        """Those of these rows that changed since they were in a page; the touched ones stay touched."""
        found = [one.counters for one in map(self._counted.get, slots) if one is not None]
        changed = [one for one in found if one.is_touched or one.is_changed]
        for one in changed:
            one.is_changed = False
        return pack(changed)

    def refused(self, slots: Iterable[int]) -> bytes:
        """[slots, messages or bytes, levels] work refused by each level since the start, int64; all must exist."""
        totals = list(chain.from_iterable(self._counted[slot].refused_totals() for slot in slots))
        return pack_numbers(f"{len(totals)}q", *totals)

    def open_windows(self, rows: Iterable[OpenedWindow]) -> None:
        """As `rgd.core.counts.page.Pages`."""
        for slot, is_idle, *wanted in rows:
            if (one := self._counted.get(slot)) is not None:
                one.counters.open_window(is_idle=is_idle)
                one.counters.wanted = wanted

    def report(self, rows: Iterable[tuple[int, bool]]) -> None:
        """Note of some groups, by slot id, whether the peers know of the demand."""
        for slot, is_reported in rows:
            if (one := self._counted.get(slot)) is not None:
                one.reported = is_reported

    def clear(self) -> None:
        """Forget what was noted by slot id, because these are no longer in use."""
        self.unreported.clear()
        self.backlogged.clear()
        self.dropped.clear()

    def call_out(self, slot: int) -> None:
        """Ask for an early report of a group."""
        if slot != NO_SLOT:
            self.unreported.append(slot)
            self.on_news()


def _nobody_listens() -> None:
    """The default of `News.on_news`."""
