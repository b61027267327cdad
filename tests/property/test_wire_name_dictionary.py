"""Numbers in place of names, over a line that loses, doubles and delays.

The law: whatever was lost, what a listener reads is what was said, or nothing; and a full report is
always read. Not covered: hostile bytes (test_wire_hostile_bytes.py).
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from tests.support.wire_values import in_order

GROUPS = [f"g{place}" for place in range(8)]

keys = st.tuples(st.sampled_from(GROUPS), st.sampled_from(Kind))
reports = st.builds(
    lambda told, full, amount: Report(
        Sender("b1", 1),
        1,
        1_000_000_000,
        rows=UsageColumns.of(
            *(UsageRow(group, kind, 1, Pair(amount), Pair(amount)) for group, kind in told)
        ),
        full=full,
        rows_hash=5,
    ),
    st.lists(keys, unique=True, max_size=10),
    st.sampled_from([False, False, False, True]),
    st.integers(1, 1000),
)

#: What becomes of a message: lost, heard, heard twice, heard late.
FATES = ["lost", "heard", "heard", "twice", "late"]


@pytest.mark.slow
@given(st.lists(st.tuples(reports, st.sampled_from(FATES), st.booleans()), max_size=25))
def test_what_is_read_is_what_was_sent_or_nothing(
    happenings: list[tuple[Report, str, bool]],
) -> None:
    numbering, name_decoders = NameEncoder(), NameDecoders()
    late: list[tuple[Report, bytes]] = []
    incarnation = 1
    for drawn, fate, restarts in happenings:
        if restarts:
            incarnation, numbering = incarnation + 1, NameEncoder()
        said = replace(drawn, sender=Sender("b1", incarnation))
        payload = encode(said, numbering)
        if fate == "late":
            late.append((said, payload))
            continue
        for _ in range({"lost": 0, "heard": 1, "twice": 2}[fate]):
            heard = decode(payload, name_decoders)
            nothing = replace(said, rows=UsageColumns.of(), full=False)
            assert in_order(heard) == in_order(said) or (heard == nothing and not said.full)
    for said, payload in late:
        heard = decode(payload, name_decoders)
        nothing = replace(said, rows=UsageColumns.of(), full=False)
        assert in_order(heard) in (in_order(said), nothing)
