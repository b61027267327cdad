"""The rate in force is the least of the targets of the last `settle_ns`, whatever happens when.

The model keeps every target and looks back over the window. Not covered: where targets come from
(tests/unit/core/broker/test_sharing.py).
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.broker.sharing import SettlingRate
from rgd.core.policies.model import Rate
from rgd.core.units import Nanos

targets = st.none() | st.integers(0, 5)
steps = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["aim", "aim", "read"]), targets), max_size=40
)


@dataclass
class Looking:
    """The model: everything it was ever told."""

    settle: int
    told: list[tuple[int, Rate]] = field(default_factory=list)

    def at(self, now: int) -> Rate:
        ends = [moment for moment, _ in self.told[1:]]
        window = [
            rate
            for (_, rate), end in zip(self.told, [*ends, now + 1], strict=True)
            if end > now - self.settle
        ]
        limited = [rate for rate in window if rate is not None]
        return min(limited, default=None)


@given(first=targets, settle=st.integers(0, 10), script=steps)
def test_the_rate_in_force_is_a_sliding_minimum(
    first: Rate, settle: int, script: list[tuple[int, str, Rate]]
) -> None:
    rate, model, now = SettlingRate(first, Nanos(0)), Looking(settle, [(0, first)]), 0
    for gap, step, target in script:
        now += gap
        if step == "aim":
            rate.aim(target, Nanos(now))
            model.told.append((now, target))
            assert rate.target == target
        else:
            assert rate.at(Nanos(now), settle) == model.at(now)
    assert rate.at(Nanos(now), settle) == model.at(now)
    # And so it goes on by itself, with a change exactly when it says.
    for later in range(now, now + 2 * settle + 2):
        due = rate.next_at(settle)
        changes = model.at(later) != rate.at(Nanos(later - 1), settle) if later > now else False
        assert (due is not None and due <= later) == changes
        assert rate.at(Nanos(later), settle) == model.at(later)
    assert rate.next_at(settle) is None
