"""What is logged comes back, entry by entry, whatever was lost before it; bytes that are changed are refused.

Not covered: files (tests/unit/adapters/usagelog), how many bytes it takes (bench/usagelog.py).
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.exchange.columns import REFUSED_BY
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import Group, SharePolicyName
from rgd.core.policies.records import PolicyRecord, PolicyRecords, Value, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import COUNT_MAX, Kind, Pair
from rgd.wire.chain import KEY_EVERY
from rgd.wire.errors import Reason, WireError
from rgd.wire.frame import Entry, decode_entry, encode_entry, plain_payload
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import CONTEXT_ENTRIES, Item, LogEncoder, LogReader, tried
from rgd.wire.policies import decode_policy
from rgd.wire.record import LoggedRound, in_order
from rgd.wire.record_pb2 import RoundRecord as Proto
from tests.support import wire_values
from tests.support.columns import shares_of

#: As one by one.
Read = RoundRecord | PolicyPart | WireError | None

GROUPS = ("bronze", "gold", "silver", "tin")


def policy_value(key: str, text: str) -> Value:
    """What a policy's JSON in the log says."""
    record = f'{{"version":1,"revision":0,"writer":"log","value":{text}}}'
    return decode_policy(key, record.encode()).value


def with_few_groups(value: RoundRecord, places: list[int]) -> RoundRecord:
    """The record with groups of a few names, so that rows continue those of earlier records."""
    rows = value.rows.take(np.arange(min(len(value.rows), len(places))))
    names = tuple(GROUPS[place] for place in places[: len(rows)])
    keys = list(zip(names, rows.usage.kinds.tolist(), strict=True))
    first = np.array([place for place, key in enumerate(keys) if key not in keys[:place]], np.int64)
    return replace(value, rows=replace(rows, usage=replace(rows.usage, groups=names)).take(first))


def with_levels(value: RoundRecord, amounts: list[int]) -> RoundRecord:
    count = len(value.rows)
    cells = count * len(REFUSED_BY) * 2
    if not amounts or not count:
        return value
    levels = np.resize(np.array(amounts, np.int64), cells).reshape(count, len(REFUSED_BY), 2)
    return replace(value, rows=replace(value.rows, refused_by=levels))


rounds = st.builds(
    with_levels,
    st.builds(
        with_few_groups,
        wire_values.round_records,
        st.lists(st.integers(0, len(GROUPS) - 1), min_size=6, max_size=6),
    ),
    st.lists(st.integers(0, COUNT_MAX // 16), max_size=5),
)


def round_of(sequence: int, groups: int = 1) -> RoundRecord:
    """A round of steady flows, as meters count them."""
    rows = [
        ShareRow(
            UsageRow(
                f"group-{place:04}",
                Kind.PUBLISH,
                topics=3,
                admitted=Pair(70_000, 7_000_000),
                wanted=Pair(90_000, 7_000_000),
            ),
            (70_000 + place, None),
            (1_000_000, None),
            SharePolicyName.MAX_MIN,
            Pair(20, 0),
            sent=False,
            refused_by=(("resource_group", Pair(20, 0)),),
            admitted_total=Pair(70 * sequence, 7000 * sequence),
            wanted_total=Pair(90 * sequence, 7000 * sequence),
        )
        for place in range(groups)
    ]
    return RoundRecord(Sender("b1", 1), sequence, 1_000_000_000, shares_of(*rows))


def entry_of(encoder: LogEncoder, item: Item) -> Entry:
    payload = encoder.encode(item)
    made = Entry("b1", 1, 2, payload.data, payload.properties, unknown=payload.metadata)
    assert decode_entry(encode_entry(made)) == made
    return made


def damaged(entry: Entry) -> Entry:
    """An entry whose rows, if it has any, cannot be read."""
    proto = Proto.FromString(plain_payload(entry))
    proto.chained.sent = b"\x02" * proto.chained.rows
    return replace(entry, payload=proto.SerializeToString(), unknown=b"")


def answers(found: Iterable[Read]) -> list[Read | Reason]:
    return [one.reason if isinstance(one, WireError) else one for one in found]


def together(entries: list[Entry]) -> list[Read | Reason]:
    return answers(
        found.alone() if isinstance(found, LoggedRound) else found
        for _, found in LogReader().read_all(enumerate(entries))
    )


@pytest.mark.slow
@given(
    st.lists(rounds, max_size=8), st.sets(st.integers(1, 7)), st.sets(st.integers(0, 7), max_size=2)
)
def test_records_come_back_in_order_and_damage_costs_what_it_costs_one_by_one(
    values: list[RoundRecord], restarts: set[int], faults: set[int]
) -> None:
    encoder, reader, entries = LogEncoder(), LogReader(), list[Entry]()
    for place, value in enumerate(values):
        if place in restarts:
            encoder.begin_segment()
        entries.append(entry_of(encoder, value))
    assert together(entries) == [in_order(value) for value in values]

    entries = [damaged(one) if at in faults else one for at, one in enumerate(entries)]
    assert together(entries) == answers(tried(reader.read, entry) for entry in entries)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    lost=st.sets(st.integers(0, 3 * KEY_EVERY - 1), max_size=5),
    begin=st.integers(0, 3 * KEY_EVERY - 1),
)
def test_a_lost_entry_costs_no_more_than_up_to_the_next_key_record(
    lost: set[int], begin: int
) -> None:
    encoder, reader = LogEncoder(), LogReader()
    values = [round_of(sequence) for sequence in range(3 * KEY_EVERY)]
    entries = [entry_of(encoder, value) for value in values]
    is_linked = False
    for place, entry in list(enumerate(entries))[begin:]:
        is_linked = place not in lost and (is_linked or place % KEY_EVERY == 0)
        if place in lost:
            continue
        if is_linked:
            assert reader.read(entry) == values[place]
        else:
            with pytest.raises(WireError) as refused:
                reader.read(entry)
            assert refused.value.reason is Reason.UNLINKED


def test_entries_of_another_sort_do_not_put_a_key_record_out_of_reach() -> None:
    encoder = LogEncoder()
    logged: list[tuple[Entry, RoundRecord | None]] = []
    for sequence in range(2 * KEY_EVERY):
        logged.append((entry_of(encoder, round_of(sequence)), round_of(sequence)))
        encoder.encode(b"of another sort")
        logged.append((Entry("p", sequence, 0, b"of another sort"), None))
    for place in range(CONTEXT_ENTRIES, len(logged), 5):
        reader, found = LogReader(), None
        for entry, _ in logged[place - CONTEXT_ENTRIES : place + 1]:
            found = tried(reader.read, entry)
        assert found == logged[place][1]


def test_a_round_that_repeats_takes_a_few_bytes() -> None:
    encoder = LogEncoder()
    sizes = [len(entry_of(encoder, round_of(sequence, 1000)).payload) for sequence in range(1, 5)]
    assert sizes[0] > 2000
    assert max(sizes[1:]) < 200


@pytest.mark.slow
@given(
    value=st.lists(rounds, min_size=1, max_size=3),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4),
    keep=st.floats(0, 1),
)
def test_changed_bytes_are_refused_or_still_a_record(
    value: list[RoundRecord], flips: list[tuple[float, int]], keep: float
) -> None:
    encoder, reader = LogEncoder(), LogReader()
    *before, last = [entry_of(encoder, one) for one in value]
    for entry in before:
        reader.read(entry)
    body = bytearray(plain_payload(last))
    for at, flip in flips:
        if body:
            body[int(at * len(body))] ^= flip
    changed = replace(last, payload=bytes(body[: round(keep * len(body))]), unknown=b"")
    found = tried(reader.read, changed)
    if isinstance(found, RoundRecord):
        again = LogEncoder()
        assert LogReader().read(entry_of(again, found)) == in_order(found)


@pytest.mark.slow
@given(st.lists(wire_values.policy_records(), max_size=12, unique_by=lambda one: one.key))
def test_policies_come_back_whole_and_as_changes(policies: list[PolicyRecord]) -> None:
    encoder, reader = LogEncoder(), LogReader()
    known: dict[str, object] = {}
    kept = PolicyRecords()
    for count in range(len(policies) + 1):
        if count:
            kept.put(policies[count - 1])
        snapshot = kept.snapshot()
        expected = {one.key: one.value for one in records_of(snapshot, "x")}
        for item in encoder.items_of(PoliciesInForce(Sender("b1", 1), snapshot, count)):
            part = reader.read(entry_of(encoder, item))
            assert isinstance(part, PolicyPart)
            assert part.is_change == (count > 0)
            known.update((key, policy_value(key, text)) for key, text in part.texts)
        assert {key: value for key, value in known.items() if value is not None} == expected
        whole = [reader.read(entry_of(encoder, item)) for item in encoder.begin_segment()]
        texts = [text for one in whole if isinstance(one, PolicyPart) for text in one.texts]
        assert {key: policy_value(key, text) for key, text in texts} == expected


def test_policies_beyond_the_limit_are_left_out_and_counted() -> None:
    groups = {f"g{place}": Group(f"g{place}") for place in range(100)}
    encoder = LogEncoder(policies_bytes_max=200)
    (part,) = encoder.items_of(PoliciesInForce(Sender("b1", 1), PolicySnapshot(groups), 1))
    assert isinstance(part, PolicyPart)
    assert part.left_out == 100 - len(part.texts)
    assert 0 < len(part.texts) < 100


def test_a_payload_compressed_by_other_means_is_refused() -> None:
    lz4 = b"\x40\x01\x48\x64"
    with pytest.raises(WireError, match="compression 1"):
        plain_payload(Entry("p", 1, 2, b"x", unknown=lz4))


def test_a_payload_of_another_size_than_its_metadata_says_is_refused() -> None:
    entry = entry_of(LogEncoder(), round_of(1, 1000))
    wrong = replace(entry, unknown=entry.unknown[:2] + b"\x48\x01")
    with pytest.raises(WireError) as refused:
        plain_payload(wrong)
    assert refused.value.reason is Reason.BAD_STRUCTURE
