"""A round that leaves out the rows that rest closes every window as one that closes them all.

Not covered: what rounds make of it (tests/unit/core/broker/test_rounds.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import DemandTable
from rgd.core.units import NS_PER_MS, Nanos, Pair
from tests.support.meters import Rows

ROWS = 4


@dataclass(frozen=True)
class Step:
    """A request to one row, a tick, an early report of one row, or the end of a round."""

    sort: str
    row: int
    cost: Pair
    gap_ms: int


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["admit", "admit", "refuse", "tick", "early", "end", "end"]),
        st.integers(0, ROWS - 1),
        st.builds(Pair, st.integers(1, 1000), st.integers(0, 10**6)),
        st.integers(0, 400),
    ),
    max_size=60,
)


class House:
    """A table of rows that requests touch."""

    def __init__(self, *, closes_all: bool) -> None:
        self.closes_all = closes_all
        rows = Rows()
        self.news = rows.news
        self.table = DemandTable(DemandSettings(), self.news)
        self.counters = [rows.add(Nanos(0)) for _ in range(ROWS)]
        self.advertised: set[int] = set()
        self.closed = 0

    def do(self, step: Step, now: Nanos) -> dict[int, list[object]]:
        """Let a step happen; returns what is measured, by row."""
        one = self.counters[step.row]
        if step.sort == "admit":
            one.admit(*step.cost, 1, None, now)
        elif step.sort == "refuse":
            one.refuse(step.cost, step.row % 3, None, 100, now)
        elif step.sort == "tick":
            return {slot: [True] for slot in self.tick()}
        elif step.sort == "early":
            if one.requests == 0:
                return {}
            return {one.slot: list(_values(self.table.measure(np.array([one.slot]), now), 0))}
        else:
            return self.end(now)
        return {}

    def tick(self) -> list[int]:
        """Close slots of the touched rows."""
        return [*map(int, self.table.tick(self.news.collect(ROWS)))]

    def end(self, now: Nanos) -> dict[int, list[object]]:
        """Close windows."""
        pending = self.table.begin(now)
        if self.closes_all:
            pending = np.array([one.slot for one in self.counters if one.requests], np.int64)
        self.closed += len(pending)
        told = np.array([slot in self.advertised for slot in pending.tolist()], np.bool_)
        closed = self.table.close(pending, told, now)
        if closed is None:
            return {}
        slots = closed.slots
        estimates = closed.measured.estimates
        limited = np.ones((len(slots), 2), np.bool_)
        self.table.advertise(slots, estimates.wanted, estimates, limited, slots % 2 == 0)
        wanted = zip(slots.tolist(), estimates.wanted.tolist(), strict=True)
        self.advertised = {slot for slot, pair in wanted if any(pair)}
        return {slot: list(_values(closed, at)) for at, slot in enumerate(slots.tolist())}


def _values(of: object, at: int) -> Iterator[object]:
    """Everything that was measured of one row."""
    for field in fields(of):  # type: ignore[arg-type]  # a dataclass
        value = getattr(of, field.name)
        if field.name in {"slots", "elapsed_ns", "held", "slot_noise", "of_noise"}:
            continue  # The estimate is compared, which is made of these.
        if isinstance(value, np.ndarray):
            yield field.name, value[at].tolist()
        else:
            yield from _values(value, at)


@given(steps)
def test_rows_that_rest_are_closed_as_if_each_round_closed_them(script: list[Step]) -> None:
    sparse, full = House(closes_all=False), House(closes_all=True)
    now = Nanos(0)
    for step in [*script, Step("end", 0, Pair(1), 1)]:
        now = Nanos(now + step.gap_ms * NS_PER_MS)
        assert sparse.do(step, now) == full.do(step, now)
    assert sparse.closed <= full.closed


def test_a_row_without_requests_is_closed_once_more_than_it_is_reported_and_then_no_more() -> None:
    house, asked = House(closes_all=False), Step("admit", 0, Pair(100), 1)
    house.do(asked, Nanos(NS_PER_MS))
    house.tick()
    ended = [len(house.end(Nanos(second * 1000 * NS_PER_MS))) for second in range(1, 6)]
    assert ended == [1, 1, 0, 0, 0]
    # Counted, told as idle, and looked at once more before it rests.
    assert house.closed == 3
