"""A meter and its estimator meet steps of a steady flow at every phase of caller, slot and round.

Early reports and refusals as a broker would have them; a flow's requests come every 20 ms with whole
messages, so that a slot holds one more or less than the last.

Not covered: the exchange and shares (tests/simulation), noise (test_estimator.py), slots by
themselves (test_meter.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair
from tests.support.meters import Metered, Shown, tell

GAP_NS = 20 * NS_PER_MS
#: What a share may be off by.
WITHIN = 0.02

PHASES = 40

#: Messages per second, four rounds each.
SWAPS = [100.0, 3000.0, 100.0, 3000.0, 100.0]
TAILS = [1000.0, 675.33, 613.37, 857.21, 753.9]


@dataclass
class Flow:
    """One caller of one group at one broker that has a share."""

    rates: list[float]
    #: When the first step is, after four rounds and a caller's phase, and the rounds' own phase.
    step_ns: int
    round_phase_ns: int
    share: float = 1900.0
    meter: Metered = field(default_factory=lambda: Metered(Nanos(0)))
    tokens: float = 0.0
    told: float = 0.0

    def rounds(self) -> Iterator[tuple[int, float]]:
        """The end of each round, and what was told then."""
        due = NS_PER_S + self.round_phase_ns
        asked = 0
        early_due = 0
        for now in range(GAP_NS, self.end_ns, GAP_NS):
            while due <= now:
                demand = self.meter.drain(Nanos(due))
                assert demand is not None
                self.tell(demand.measured)
                yield due, self.told
                early_due = due + NS_PER_S // 10
                due += NS_PER_S
            wanted = int(self.wanted_by(now))
            jumps = self.ask(wanted - asked, now)
            asked = wanted
            if jumps and now >= early_due:
                self.tell(self.meter.measure(Nanos(now)))
                early_due = now + NS_PER_S // 10

    @property
    def steps_ns(self) -> list[int]:
        return [self.step_ns + turn * 4_830 * NS_PER_MS for turn in range(len(self.rates) - 1)]

    @property
    def end_ns(self) -> int:
        return self.steps_ns[-1] + 4 * NS_PER_S

    def rate_at(self, now: int) -> float:
        """The true rate."""
        return self.rates[sum(step <= now for step in self.steps_ns)]

    def wanted_by(self, now: int) -> float:
        bounds = [0, *(step for step in self.steps_ns if step < now), now]
        lengths = [end - begin for begin, end in pairwise(bounds)]
        return sum(rate * length for rate, length in zip(self.rates, lengths, strict=False)) / 1e9

    def ask(self, messages: int, now: int) -> bool:
        self.tokens = min(self.tokens + self.share * GAP_NS / NS_PER_S, self.share / 4)
        if self.tokens > 0:
            self.tokens -= messages
            return self.meter.admit(Pair(messages, 0), attempt=1, topic=None, now=Nanos(now))
        return self.meter.refuse(Pair(messages, 0), 1, None, 10, Nanos(now))

    def tell(self, measured: Shown) -> None:
        tell(self.meter, measured.wanted, measured.threshold, hungry=True)
        self.told = measured.wanted.messages / MILLI


@pytest.mark.parametrize("rates", [SWAPS, TAILS, TAILS[::-1]], ids=["swap", "falls", "rises"])
@pytest.mark.slow
def test_a_step_is_known_a_full_round_later_wherever_it_falls(rates: list[float]) -> None:
    wrong = []
    for turn in range(PHASES):
        # Both phases in all: neither divides a slot, a gap or a round.
        step_ns = 6 * NS_PER_S + turn * 41 % 1000 * NS_PER_MS + 3_000_007
        flow = Flow(rates, step_ns, turn * 7 % 100 * NS_PER_MS)
        for end, told in flow.rounds():
            # A round that ends within one after the step may know but its first moments.
            since = min(end - step for step in [0, *flow.steps_ns] if step <= end)
            rate = flow.rate_at(end)
            if since >= NS_PER_S and abs(told - rate) > WITHIN * rate:
                wrong.append((turn, end, told, rate))
    assert wrong == []
