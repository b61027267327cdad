"""The example of docs/architecture.md: a step within a round, from its slot to two early reports."""

import numpy as np

from rgd.core.counts.counters import Counters
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import DemandTable
from rgd.core.units import MILLI, NS_PER_MS, Nanos, Pair
from tests.support.meters import ONLY, Rows
from tests.unit.core.values import ms

#: The round that the example is of begins, and the step comes.
BEGIN_MS, STEP_MS = 3_000, 3_450


def ask(counters: Counters, at_ms: int) -> None:
    """Every 10 ms a request that is granted; from the step on, two more that are refused."""
    if at_ms % 10 == 0:
        counters.admit(1, 0, 1, None, ms(at_ms))
    elif at_ms > STEP_MS and at_ms % 10 in {3, 6}:
        counters.refuse(Pair(1, 0), 1, None, 10, ms(at_ms))


def wanted_of(table: DemandTable, now: Nanos, *, is_round: bool) -> float:
    """What is reported, messages a second, and told to the table as advertised."""
    yes = np.ones(1, np.bool_)
    if is_round:
        closed = table.close(ONLY, yes, now)
        assert closed is not None
        estimates = closed.measured.estimates
    else:
        estimates = table.measure(ONLY, now).estimates
    table.advertise(ONLY, estimates.wanted, estimates, np.ones((1, 2), np.bool_), yes)
    return float(estimates.wanted[0, 0]) / MILLI


def test_a_step_within_a_round_is_reported_early_and_again_without_the_slot_it_fell_into() -> None:
    rows = Rows()
    counters, table = rows.add(Nanos(0)), DemandTable(DemandSettings(), rows.news)
    early: dict[int, float] = {}
    at_rounds: dict[int, float] = {}
    for at_ms in range(1, BEGIN_MS + 2_001):
        ask(counters, at_ms)
        now = Nanos(at_ms * NS_PER_MS)
        if at_ms % 100 == 0 and len(table.tick(rows.news.collect(1))):
            early[at_ms - BEGIN_MS] = wanted_of(table, now, is_round=False)
        if at_ms % 1_000 == 0:
            at_rounds[at_ms] = wanted_of(table, now, is_round=True)
    assert early == {500: 200, 600: 300}
    assert at_rounds == {1_000: 100, 2_000: 100, 3_000: 100, 4_000: 300, 5_000: 300}
