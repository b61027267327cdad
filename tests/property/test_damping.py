"""The rate in force is the least of the targets of the last `damping_ns`, whatever happens when.

The model keeps every target and looks back over the window. Where more increases wait than are kept, a
rate may come into force later than the model's, never earlier, and at the latest `damping_ns` after the
last target. Not covered: where targets come from (tests/unit/core/broker/test_sharing.py).
"""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.broker.damping import INCREASES_MAX, Damping
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.policies.model import GroupKey
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Kind, Nanos

SLOTS = (0, 1, 70)
#: So few different rates that no more than `INCREASES_MAX` increases can wait.
FEW_RATES = st.sampled_from([*range(INCREASES_MAX), NO_RATE])
MANY_RATES = st.sampled_from([*range(3 * INCREASES_MAX), NO_RATE])


def _index() -> GroupIndex:
    index = GroupIndex()
    for slot in range(max(SLOTS) + 1):
        index.slot(GroupKey(f"group-{slot}", Kind.PUBLISH))
    return index


@dataclass
class Looking:
    """The model: everything it was ever told."""

    told: list[tuple[int, int]] = field(default_factory=list)

    def at(self, now: int, damping_ns: int) -> int:
        ends = [moment for moment, _ in self.told[1:]]
        window = [
            rate
            for (_, rate), end in zip(self.told, [*ends, now + 1], strict=True)
            if end > now - damping_ns
        ]
        return min((rate for rate in window if rate != NO_RATE), default=NO_RATE)


@dataclass
class Applied:
    """A Damping, its model, and the rates in force as it announced them."""

    damping_ns: int
    count_max: int
    damping: Damping = field(default_factory=lambda: Damping(_index()))
    models: dict[int, tuple[Looking, Looking]] = field(default_factory=dict)
    rates: dict[int, list[int]] = field(default_factory=dict)

    def put_in_force(self, now: int) -> None:
        while (due := self.damping.next_at(self.damping_ns)) is not None and due <= now:
            slots, rates = self.damping.raise_due(Nanos(now), self.damping_ns, self.count_max)
            assert len(set(slots.tolist())) == len(slots) <= self.count_max
            self.rates |= dict(zip(slots.tolist(), rates.tolist(), strict=True))

    def end(self, slot: int) -> None:
        if slot in self.models:
            self.damping.end(np.array([slot]))
            del self.models[slot], self.rates[slot]

    def aim(self, targets: dict[int, tuple[int, int]], now: int) -> None:
        for slot, pair in targets.items():
            if slot not in self.models:
                self.damping.begin(np.array([slot]), np.array([pair]))
                self.models[slot] = Looking(), Looking()
            for model, target in zip(self.models[slot], pair, strict=True):
                model.told.append((now, target))
        slots = np.array(list(targets), np.int64)
        rates = self.damping.aim(
            slots, np.array(list(targets.values())), Nanos(now), self.damping_ns
        )
        self.rates |= dict(zip(slots.tolist(), rates.tolist(), strict=True))

    def expected(self, now: int) -> dict[int, list[int]]:
        return {
            slot: [model.at(now, self.damping_ns) for model in pair]
            for slot, pair in self.models.items()
        }


def scripts(rates: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, object]]]:
    targets = st.dictionaries(st.sampled_from(SLOTS), st.tuples(rates, rates), min_size=1)
    return st.lists(
        st.tuples(st.integers(0, 4), targets | targets | st.sampled_from(SLOTS)), max_size=40
    )


@given(damping_ns=st.integers(0, 10), count_max=st.integers(1, 3), script=scripts(FEW_RATES))
def test_the_rate_in_force_is_a_sliding_minimum_and_every_increase_is_due_in_time(
    damping_ns: int, count_max: int, script: list[tuple[int, dict[int, tuple[int, int]] | int]]
) -> None:
    applied, now = Applied(damping_ns, count_max), 0
    for gap, step in script:
        for _ in range(gap):
            now += 1
            applied.put_in_force(now)
            assert applied.rates == applied.expected(now)
        if isinstance(step, int):
            applied.end(step)
        else:
            applied.aim(step, now)
        assert applied.rates == applied.expected(now)
    for _ in range(damping_ns + 1):
        now += 1
        applied.put_in_force(now)
        assert applied.rates == applied.expected(now)
    assert applied.damping.next_at(damping_ns) is None


@given(damping_ns=st.integers(0, 10), script=scripts(MANY_RATES))
def test_with_more_increases_than_are_kept_no_rate_is_in_force_too_early(
    damping_ns: int, script: list[tuple[int, dict[int, tuple[int, int]] | int]]
) -> None:
    applied, now = Applied(damping_ns, 3), 0

    def is_early(rates: list[int], expected: list[int]) -> bool:
        pairs = zip(rates, expected, strict=True)
        return any(most != NO_RATE and not 0 <= rate <= most for rate, most in pairs)

    for gap, step in script:
        for _ in range(gap):
            now += 1
            applied.put_in_force(now)
            expected = applied.expected(now)
            assert not any(is_early(applied.rates[slot], expected[slot]) for slot in expected)
        if isinstance(step, int):
            applied.end(step)
        else:
            applied.aim(step, now)
    for _ in range(damping_ns + 1):
        now += 1
        applied.put_in_force(now)
    assert applied.rates == applied.expected(now)
