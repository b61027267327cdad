"""The usage map against a dict of dicts: any reports in any order, brokers that go included.

Steady brokers' reports have numbers for names, as they have off the wire.
Not covered: a report with a group twice, which the wire refuses.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.units import Kind, Pair
from tests.support.columns import advertised_hash

BROKERS = [f"b{place}" for place in range(12)]
GROUPS = [f"g{place}" for place in range(9)]

amounts = st.sampled_from([Pair(), Pair(1), Pair(0, 1 << 62), Pair(5, 5)])
rows = st.builds(
    UsageRow, st.sampled_from(GROUPS), st.sampled_from(Kind), st.integers(0, 2), amounts, amounts
)
reports = st.builds(
    lambda broker, told, full: Report(
        Sender(broker, 1), 1, 1, rows=UsageColumns.of(*told), full=full
    ),
    st.sampled_from(BROKERS),
    st.lists(rows, max_size=12, unique_by=lambda row: (row.group, row.kind)),
    st.sampled_from([False, False, True]),
)
#: What brokers tell of in a steady cluster, each in an order of its own.
STEADY = tuple(tuple(GROUPS[place::-1] + GROUPS[:place:-1]) for place in (3, 5, 8))
steady_reports = st.builds(
    lambda broker, groups, amounts_told, full: Report(
        Sender(broker, 1),
        1,
        1,
        rows=replace(
            UsageColumns.of(
                *(
                    UsageRow(group, Kind.PUBLISH, 1, amount, amount)
                    for group, amount in zip(groups, amounts_told, strict=True)
                )
            ),
            groups=NumberedNames(GROUPS, np.array([GROUPS.index(group) for group in groups])),
        ),
        full=full,
    ),
    st.sampled_from(BROKERS[:3]),
    st.sampled_from(STEADY),
    st.lists(
        st.sampled_from([Pair(1), Pair(5, 5), Pair(0, 7), Pair(1), Pair()]), min_size=9, max_size=9
    ),
    st.sampled_from([False, False, True]),
)
Model = dict[str, dict[GroupKey, UsageRow]]


def changes(model: Model, report: Report) -> set[GroupKey]:
    """What the report changes, by the words of PIP-82."""
    own = model.setdefault(report.sender.broker, {})
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


@given(st.lists(reports | steady_reports | st.sampled_from(BROKERS), max_size=60))
def test_the_map_holds_and_hashes_what_a_dict_would(script: list[Report | str]) -> None:
    usage_map, model = UsageMap(), Model()
    for happening in script:
        if isinstance(happening, str):
            usage_map.remove(happening)
            expected = set(model.pop(happening, {}))
        else:
            places = usage_map.apply(happening)
            expected = changes(model, happening)
            found = [usage_map.index.keys[place] for place in places.tolist()]
            assert (set(found), len(found)) == (expected, len(expected))
        broker = happening if isinstance(happening, str) else happening.sender.broker
        if len(expected) % 2:
            # Asked for now and then, so that it is known at some reports and not at others.
            own = model.get(broker, {})
            assert usage_map.hash_of(broker) == advertised_hash(own.values())
    assert usage_map.brokers() == {broker for broker, own in model.items() if own}
    for broker in BROKERS:
        own = model.get(broker, {})
        held = usage_map.rows_of(broker)
        assert held == own
        assert usage_map.hash_of(broker) == advertised_hash(own.values())
        assert usage_map.count_of(broker) == len(own)
        for key, row in held.items():
            assert usage_map.rows(key)[broker] == row
    places = usage_map.index.slots(GROUPS, np.zeros(len(GROUPS), np.uint8))
    gathered = usage_map.gather(places)
    counted = Counter(
        key.group for own in model.values() for key in own if key.kind is Kind.PUBLISH
    )
    assert [GROUPS[at] for at in gathered.group.tolist()] == sorted(counted.elements())
