"""The rows of one stock broker behave as two usages for each group."""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.policies.model import GroupKey
from rgd.core.stock.rows import BrokerRows, Usage
from rgd.core.units import COUNT_MAX, Kind, Pair

KEYS = [GroupKey(name, kind) for name in ("gold", "tin") for kind in Kind]
counts = st.integers(0, 3) | st.just(COUNT_MAX + 5)
usages: st.SearchStrategy[Usage] = st.none() | st.builds(Pair, counts, counts)
steps = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans(), usages), max_size=30)


def kept(usage: Usage) -> Usage:
    """As much of it as is kept."""
    return None if usage is None else Pair(*(min(count, COUNT_MAX) for count in usage))


@given(steps)
def test_the_last_two_reports_of_each_row_are_kept(
    steps: list[tuple[GroupKey, bool, Usage]],
) -> None:
    rows = BrokerRows()
    model: dict[GroupKey, tuple[Usage, Usage]] = {}
    for key, is_removed, usage in steps:
        if key not in model:
            model[key] = kept(usage), None
            assert rows.add(key, usage) == model[key][0]
        elif is_removed:
            assert rows.remove(key) == model.pop(key)[0]
        else:
            now = model[key][0]
            # Twice without amounts, and never with any: it uses nothing.
            unchanged = Pair() if now is None else now
            model[key] = (unchanged if usage is None else kept(usage)), now
            assert rows.report(key, usage) == model[key][0]
    assert list(rows) == list(model)
    for key, (now, before) in model.items():
        assert rows.now(key) == now
        largest = now
        if now is not None and before is not None and any(now):
            largest = Pair(*map(max, now, before))
        assert rows.counted(key) == largest
