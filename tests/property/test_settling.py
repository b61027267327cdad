"""The rate in force is the least of the targets of the last `settle_ns`, whatever happens when.

The model keeps every target and looks back over the window. Not covered: where targets come from
(tests/unit/core/broker/test_sharing.py).
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.broker.settling import Settling, SettlingRate
from rgd.core.policies.model import Rate, Rates
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
        since = rate.rises_since
        changes = model.at(later) != rate.at(Nanos(later - 1), settle) if later > now else False
        assert (since is not None and since + settle <= later) == changes
        assert rate.at(Nanos(later), settle) == model.at(later)
    assert rate.rises_since is None


@given(
    settle=st.integers(0, 10),
    count_max=st.integers(1, 3),
    script=st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 2), st.sampled_from(["aim", "aim", "end"])
        ).flatmap(lambda step: st.tuples(st.just(step), targets, targets)),
        max_size=40,
    ),
)
def test_every_raise_of_every_group_is_due_in_time_whatever_else_happens(
    settle: int,
    count_max: int,
    script: list[tuple[tuple[int, int, str], Rate, Rate]],
) -> None:
    settling, now = Settling(), 0
    models: dict[int, tuple[Looking, Looking]] = {}
    #: What the buckets were told last.
    applied: dict[int, Rates] = {}

    def put_in_force() -> None:
        while (due := settling.next_at(settle)) is not None and due <= now:
            places = settling.due(Nanos(now), settle, count_max)
            assert len(set(places)) == len(places) <= count_max
            for place in places:
                applied[place] = settling.in_force(place, Nanos(now), settle)

    for (gap, place, what), messages, size in script:
        for _ in range(gap):
            now += 1
            put_in_force()
        if what == "end":
            settling.end(place)
            models.pop(place, None)
            applied.pop(place, None)
        elif place not in settling:
            settling.begin(place, Rates(messages, size), Nanos(now))
            models[place] = Looking(settle, [(now, messages)]), Looking(settle, [(now, size)])
            applied[place] = settling.in_force(place, Nanos(now), settle)
        else:
            for model, target in zip(models[place], (messages, size), strict=True):
                model.told.append((now, target))
            applied[place] = settling.aim(place, Rates(messages, size), Nanos(now), settle)
            assert settling.target(place) == Rates(messages, size)
        put_in_force()
        # Each place is waited for once, however often it is aimed.
        assert len(settling._waiting) <= len({0, 1, 2})
        assert applied == {
            at: Rates(*(model.at(now) for model in pair)) for at, pair in models.items()
        }
    for _ in range(settle + 1):
        now += 1
        put_in_force()
        assert applied == {
            at: Rates(*(model.at(now) for model in pair)) for at, pair in models.items()
        }
    assert settling.next_at(settle) is None
