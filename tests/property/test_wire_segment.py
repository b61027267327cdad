"""A segment reads the same however its bytes are split, and damage costs no more than what it hit.

Not covered: the exact findings for particular damage (tests/unit/wire/test_segment.py), and files.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.wire.frame import Entry, encode_entry
from rgd.wire.segment import Damaged, Found, SegmentReader, Stored, Torn, encode_stored
from tests.support import wire_values

segments = st.lists(wire_values.entries, max_size=5).map(
    lambda entries: b"".join(encode_stored(encode_entry(entry)) for entry in entries)
)
cuts = st.lists(st.integers(0, 600), max_size=8).map(sorted)
places = st.integers(0, 2_000)


@st.composite
def damaged_segments(draw: st.DrawFn) -> bytes:
    """A segment with bits turned, stretches lost, strangers put in, or its end cut off."""
    data = bytearray(draw(segments))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(places) % (len(data) + 1)
        match draw(st.sampled_from(["turn", "lose", "insert", "cut"])):
            case "turn":
                if at < len(data):
                    data[at] ^= 1 << draw(st.integers(0, 7))
            case "lose":
                del data[at : at + draw(st.integers(1, 40))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=20) | st.just(b"\0\0\0\x0f\x0e\x01" * 3))
            case _:
                del data[at:]
    return bytes(data)


def read(data: bytes, cuts: Sequence[int] = ()) -> list[Found]:
    reader = SegmentReader()
    found: list[Found] = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += reader.feed(data[start:end])
    return found + reader.finish()


def size_of(found: Found) -> int:
    return 4 + len(found.data) if isinstance(found, Stored) else found.size


@given(st.lists(wire_values.entries, max_size=6), cuts)
def test_entries_survive_any_split_of_the_bytes(entries: list[Entry], cuts: list[int]) -> None:
    data = b"".join(encode_stored(encode_entry(entry)) for entry in entries)
    found = read(data, cuts)
    assert [item.entry for item in found if isinstance(item, Stored)] == entries
    assert all(isinstance(item, Stored) for item in found)


@pytest.mark.slow
@given(damaged_segments(), cuts)
def test_findings_do_not_depend_on_the_split(data: bytes, cuts: list[int]) -> None:
    assert read(data, cuts) == read(data) == read(data, range(1, len(data)))


@given(damaged_segments())
def test_every_byte_is_in_exactly_one_finding(data: bytes) -> None:
    at = 0
    found = read(data)
    for item in found:
        assert item.offset == at
        assert size_of(item) > 0
        at += size_of(item)
    assert at == len(data)
    assert not any(isinstance(item, Torn) for item in found[:-1])


@given(st.lists(wire_values.entries, min_size=1, max_size=5), st.data())
def test_a_segment_cut_anywhere_loses_only_its_last_entry(
    entries: list[Entry], data: st.DataObject
) -> None:
    stored = [encode_stored(encode_entry(entry)) for entry in entries]
    whole = b"".join(stored)
    cut = data.draw(st.integers(0, len(whole)))
    found = read(whole[:cut])
    ends = [sum(map(len, stored[: count + 1])) for count in range(len(stored))]
    expected = sum(end <= cut for end in ends)
    assert [item.entry for item in found if isinstance(item, Stored)] == entries[:expected]
    torn_at = ends[expected - 1] if expected else 0
    assert found[expected:] == ([Torn(torn_at, cut - torn_at)] if cut > torn_at else [])


@given(
    before=st.lists(wire_values.entries, max_size=2),
    hit=wire_values.entries,
    after=st.lists(wire_values.entries, min_size=1, max_size=3),
    data=st.data(),
)
def test_a_damaged_entry_costs_no_other(
    before: list[Entry], hit: Entry, after: list[Entry], data: st.DataObject
) -> None:
    checksummed = [
        [Entry(entry.producer_name, 1, 2, entry.payload, broker=entry.broker) for entry in entries]
        for entries in (before, [hit], after)
    ]
    stored = [
        b"".join(encode_stored(encode_entry(entry)) for entry in entries) for entries in checksummed
    ]
    broken = bytearray(stored[1])
    # Behind the length and the broker's part every change is seen.
    first = broken.index(b"\x0e\x01") if hit.broker is None else len(broken) - len(hit.payload) - 1
    at = data.draw(st.integers(first, len(broken) - 1))
    broken[at] ^= data.draw(st.integers(1, 255))
    found = read(stored[0] + bytes(broken) + stored[2])
    entries = [item.entry for item in found if isinstance(item, Stored)]
    assert entries == checksummed[0] + checksummed[2]
    damage = [item for item in found if isinstance(item, Damaged)]
    assert [(item.offset, item.size) for item in damage] == [(len(stored[0]), len(stored[1]))]
