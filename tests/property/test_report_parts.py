"""A state in parts, over a line that loses, doubles and delays: what is held is what was sent, in the end.

Laws: the spans of a pass meet without a gap and each row is in one part; whatever is lost of it, a
receiver never forgets a row that it should hold, nor keeps one of a span that it received; after one pass
that came whole it holds what the hash is of. Not covered: when a pass is made (tests/simulation).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.bounds import ExchangeBounds
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.report_parts import ROW_BYTES_MAX, parts_of_rows, parts_of_state
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.units import Kind, Pair
from tests.support.columns import advertised_hash

ME = Sender("me", 1)

keys = st.builds(
    GroupKey,
    st.integers(0, 30).map(lambda number: "g" * (number % 7 + 1) + str(number)),
    st.sampled_from(Kind),
)
key_sets = st.lists(keys, unique=True, max_size=40)


def few(rows: int) -> int:
    """The bytes of parts of about so many rows."""
    return rows * (ROW_BYTES_MAX + 10)


def row(key: GroupKey, amount: int = 5) -> UsageRow:
    return UsageRow(key.group, key.kind, 1, Pair(amount), Pair(amount))


def passed(told: list[GroupKey], size: int, amount: int = 5) -> list[Report]:
    """A pass over a state, in parts of about so many rows."""
    index = GroupIndex(ExchangeBounds(part_bytes_max=few(size)))
    slots = np.array([index.slot(key) for key in told], np.int64)
    reports: list[Report] = []
    begin = 0
    rows_hash = advertised_hash(row(key, amount) for key in told)
    for some, span in parts_of_state(index, slots):
        rows = UsageColumns.of(*(row(index.keys[slot], amount) for slot in some.tolist()))
        assert span.begin == begin
        begin = span.end
        reports.append(
            Report(
                ME,
                len(reports) + 1,
                1,
                rows,
                full=True,
                span=span,
                rows_hash=rows_hash,
                more=begin < 1 << 64,
            )
        )
    return reports


def names(rows: UsageColumns) -> list[GroupKey]:
    return [GroupKey(one.group, one.kind) for one in rows]


@given(told=key_sets, size=st.integers(1, 6))
def test_each_row_is_in_one_part_and_none_is_too_large(told: list[GroupKey], size: int) -> None:
    parts = passed(told, size)
    assert sorted(key for part in parts for key in names(part.rows)) == sorted(told)
    for part in parts:
        assert len(part.rows) <= size + 1


@given(
    before=key_sets,
    after=key_sets,
    size=st.integers(1, 6),
    dice=st.randoms(use_true_random=False),
    fates=st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=60, max_size=60),
)
def test_whatever_is_lost_of_a_pass_the_rest_is_right_and_the_next_one_makes_it_whole(
    before: list[GroupKey], after: list[GroupKey], size: int, dice: object, fates: list[int]
) -> None:
    usage_map = UsageMap()
    usage_map.apply(Report(ME, 1, 1, UsageColumns.of(*map(row, before)), full=True))
    parts = passed(after, size, amount=7)
    received = [part for part, count in zip(parts, fates, strict=False) for _ in range(count)]
    dice.shuffle(received)  # type: ignore[attr-defined]
    for part in received:
        usage_map.apply(part)
    held = usage_map.rows_of("me")
    got = {key for part in received for key in names(part.rows)}
    lost = [part for part, count in zip(parts, fates, strict=False) if not count]
    # What was received is held; what else is held was so before, and its span was lost.
    assert got <= held.keys() <= got | set(before)
    index = usage_map.index
    for key in held.keys() - got:
        slot = index.find(key)
        assert slot is not None
        assert any(part.span.begin <= int(index.hashes[slot]) < part.span.end for part in lost)
    for part in passed(after, size, amount=7):
        usage_map.apply(part)
    assert usage_map.rows_of("me").keys() == set(after)
    assert usage_map.hash_of("me") == parts[-1].rows_hash


@given(told=key_sets, size=st.integers(1, 6))
def test_rows_that_changed_are_cut_where_they_stand(told: list[GroupKey], size: int) -> None:
    rows = UsageColumns.of(*map(row, told))
    parts = parts_of_rows(rows, few(size))
    assert len(parts) >= 1
    assert UsageColumns.join(list(parts)) == rows
    assert all(len(part) <= size + 1 for part in parts)
