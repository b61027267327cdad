"""The usage map's arena against a dict of dicts: any reports in any order, holes and moves included.

Not covered: a report with a group twice, which the wire refuses.
"""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Speaker
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.rows_hash import told_hash
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import Kind, Pair

BROKERS = [f"b{place}" for place in range(12)]
GROUPS = [f"g{place}" for place in range(9)]

amounts = st.sampled_from([Pair(), Pair(1), Pair(0, 1 << 62), Pair(5, 5)])
rows = st.builds(
    UsageRow,
    st.sampled_from(GROUPS),
    st.sampled_from(Kind),
    st.integers(0, 2),
    amounts,
    amounts,
    st.just(Pair()),
    st.just(Pair()),
)
reports = st.builds(
    lambda broker, told, full: Report(
        Speaker(broker, 1), 1, 1, rows=UsageColumns.of(*told), full=full
    ),
    st.sampled_from(BROKERS),
    st.lists(rows, max_size=12, unique_by=lambda row: (row.group, row.kind)),
    st.sampled_from([False, False, True]),
)
happenings = st.lists(reports | st.sampled_from(BROKERS), max_size=60)

Model = dict[str, dict[GroupKey, UsageRow]]


def changes(model: Model, report: Report) -> set[GroupKey]:
    """What the report changes, by the words of PIP-82."""
    own = model.setdefault(report.speaker.broker, {})
    told = {GroupKey(row.group, row.kind): row for row in report.rows}
    changed = set()
    for key in list(own):
        if (report.full and key not in told) or (key in told and told[key].is_idle):
            del own[key]
            changed.add(key)
    for key, row in told.items():
        if row.is_idle:
            continue
        before = own.get(key)
        own[key] = row
        if before is None or (before.admitted, before.wanted) != (row.admitted, row.wanted):
            changed.add(key)
    return changed


@given(happenings)
def test_the_arena_holds_what_a_dict_would(script: list[Report | str]) -> None:
    usage_map, model = UsageMap(), Model()
    for happening in script:
        if isinstance(happening, str):
            places = usage_map.remove(happening)
            expected = set(model.pop(happening, {}))
        else:
            places = usage_map.apply(happening)
            expected = changes(model, happening)
        found = [usage_map.index.keys[place] for place in places.tolist()]
        assert (set(found), len(found)) == (expected, len(expected))
    for broker in BROKERS:
        own = model.get(broker, {})
        held = usage_map.rows_of(broker)
        assert {key: tuple(row) for key, row in held.items()} == {
            key: (row.topics, row.admitted, row.wanted) for key, row in own.items()
        }
        assert usage_map.hash_of(broker) == told_hash(own.values())
        assert usage_map.count_of(broker) == len(own)
        for key, row in held.items():
            assert usage_map.rows(key)[broker] == row
    places = usage_map.index.places(GROUPS, np.zeros(len(GROUPS), np.uint8))
    gathered = usage_map.gather(places)
    counted = Counter(
        key.group for own in model.values() for key in own if key.kind is Kind.PUBLISH
    )
    assert [GROUPS[at] for at in gathered.group.tolist()] == sorted(counted.elements())
