"""Segments: names, lengths, torn ends, damage in the middle, and finding the way back.

Not covered: any split of the bytes (tests/property/test_wire_segment.py), and files.
"""

import pytest

from rgd.wire import segment
from rgd.wire.errors import Reason, WireError
from rgd.wire.frame import ENTRY_MAX, ENTRY_MIN, Entry, encode_entry
from rgd.wire.segment import Damaged, Found, SegmentReader, Stored, Torn, encode_stored

ENTRIES = [encode_entry(Entry("p", number, 2, bytes([number]) * 30)) for number in range(1, 6)]
STORED = [encode_stored(data) for data in ENTRIES]
SIZE = len(STORED[0])


def read(data: bytes) -> list[Found]:
    reader = SegmentReader()
    return reader.feed(data) + reader.finish()


def stored(*numbers: int) -> list[tuple[str, int]]:
    return [("stored", number) for number in numbers]


def shown(found: list[Found]) -> list[tuple[str, int] | Damaged | Torn]:
    return [
        ("stored", item.entry.sequence_id) if isinstance(item, Stored) else item for item in found
    ]


def turned(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def test_entries_come_with_offset_bytes_and_value() -> None:
    found = read(b"".join(STORED[:2]))
    assert [(item.offset, item.data) for item in found if isinstance(item, Stored)] == [
        (0, ENTRIES[0]),
        (SIZE, ENTRIES[1]),
    ]
    assert shown(found) == stored(1, 2)


def test_an_empty_segment_has_nothing_in_it() -> None:
    assert read(b"") == []


def test_reading_may_start_where_a_sparse_index_says() -> None:
    reader = SegmentReader(7 * SIZE)
    (found,) = reader.feed(STORED[0])
    assert found.offset == 7 * SIZE
    assert reader.whole_end == 8 * SIZE


def test_an_entry_is_found_as_soon_as_it_is_whole() -> None:
    reader = SegmentReader()
    assert reader.feed(STORED[0][:-1]) == []
    assert shown(reader.feed(STORED[0][-1:])) == stored(1)


@pytest.mark.parametrize("left", [1, 3, 4, 5, SIZE - 1])
def test_a_torn_end_is_distinguished_from_damage(left: int) -> None:
    reader = SegmentReader()
    found = reader.feed(STORED[0] + STORED[1][:left])
    assert shown(found + reader.finish()) == [("stored", 1), Torn(SIZE, left)]
    assert reader.whole_end == SIZE


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        pytest.param(SIZE - 1, Reason.CHECKSUM, id="payload"),
        pytest.param(4 + 3, Reason.CHECKSUM, id="checksum"),
        pytest.param(4, Reason.OVERSIZE, id="magic"),
        pytest.param(0, Reason.OVERSIZE, id="length-huge"),
        pytest.param(3, Reason.CHECKSUM, id="length-other"),
    ],
)
def test_damage_in_the_middle_costs_one_entry(at: int, reason: Reason) -> None:
    found = read(STORED[0] + turned(STORED[1], at) + STORED[2] + STORED[3])
    assert shown(found) == [("stored", 1), Damaged(SIZE, SIZE, reason), *stored(3, 4)]


def test_a_length_that_reaches_beyond_the_end_is_damage_when_entries_follow() -> None:
    far = (60_000).to_bytes(4, "big") + STORED[1][4:]
    found = read(STORED[0] + far + STORED[2])
    assert shown(found) == [
        ("stored", 1),
        Damaged(SIZE, SIZE, Reason.BAD_STRUCTURE),
        ("stored", 3),
    ]


def test_a_length_that_leads_to_a_later_entry_loses_none_between() -> None:
    skipping = (2 * SIZE - 4).to_bytes(4, "big") + STORED[1][4:]
    found = read(STORED[0] + skipping + STORED[2] + STORED[3])
    assert shown(found) == [("stored", 1), Damaged(SIZE, SIZE, Reason.CHECKSUM), *stored(3, 4)]


def test_two_damaged_entries_are_two_findings() -> None:
    found = read(turned(STORED[0], 20) + turned(STORED[1], 20) + STORED[2])
    assert shown(found) == [
        Damaged(0, SIZE, Reason.CHECKSUM),
        Damaged(SIZE, SIZE, Reason.CHECKSUM),
        ("stored", 3),
    ]


@pytest.mark.parametrize("left", [0, 2, 5, 20])
def test_a_damaged_entry_before_a_torn_end_is_reported_separately(left: int) -> None:
    found = read(turned(STORED[0], 20) + STORED[1][:left])
    torn = [Torn(SIZE, left)] if left else []
    assert shown(found) == [Damaged(0, SIZE, Reason.CHECKSUM), *torn]


def test_a_hole_of_zeros_is_skipped() -> None:
    found = read(STORED[0] + bytes(1000) + STORED[1])
    assert shown(found) == [
        ("stored", 1),
        Damaged(SIZE, 1000, Reason.BAD_STRUCTURE),
        ("stored", 2),
    ]


def test_zeros_to_the_end_are_damage_and_whole_end_is_before_them() -> None:
    reader = SegmentReader()
    found = reader.feed(STORED[0] + bytes(100)) + reader.finish()
    assert shown(found) == [("stored", 1), Damaged(SIZE, 100, Reason.BAD_STRUCTURE)]
    assert reader.whole_end == SIZE


def test_strangers_between_entries_are_skipped() -> None:
    found = read(STORED[0] + b"what is this?" + STORED[1])
    assert shown(found) == [("stored", 1), Damaged(SIZE, 13, Reason.OVERSIZE), ("stored", 2)]


def test_an_unchecksummed_entry_is_read_but_never_a_place_to_continue_by_itself() -> None:
    bare = encode_stored(encode_entry(Entry("p", 9, 2, is_checksummed=False)))
    assert shown(read(bare + STORED[0])) == stored(9, 1)
    # Behind a damaged one its stated end is believed, because an entry can be read there.
    found = read(turned(STORED[0], 20) + bare)
    assert shown(found) == [Damaged(0, SIZE, Reason.CHECKSUM), ("stored", 9)]
    found = read(b"\xff" * 8 + bare + STORED[0])
    assert shown(found) == [Damaged(0, 8 + len(bare), Reason.OVERSIZE), ("stored", 1)]


def test_a_decoy_that_needs_more_bytes_than_there_are_is_passed_by() -> None:
    decoy = (50_000).to_bytes(4, "big") + b"\x0e\x01"
    found = read(STORED[0] + b"\xff\xff" + decoy + STORED[1] + STORED[2])
    assert shown(found) == [("stored", 1), Damaged(SIZE, 8, Reason.OVERSIZE), *stored(2, 3)]


def test_searching_ends_when_its_work_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    decoys = (ENTRY_MIN.to_bytes(4, "big") + b"\x0e\x01" + bytes(8)) * 10
    data = STORED[0] + b"\xff" * 4 + decoys + STORED[1]
    assert shown(read(data))[-1] == ("stored", 2)
    monkeypatch.setattr(segment, "_CANDIDATE_COST_MIN", segment.RESYNC_WORK_MAX)
    reader = SegmentReader()
    found = reader.feed(data) + reader.feed(STORED[2])
    assert reader.buffered == 0
    assert shown(found + reader.finish()) == [
        ("stored", 1),
        Damaged(SIZE, len(data), Reason.OVERSIZE),
    ]


def test_a_segments_name_is_its_first_index() -> None:
    assert segment.segment_name(0) == "00000000000000000000.log"
    assert segment.segment_name(42) == "00000000000000000042.log"
    assert segment.parse_segment_name("00000000000000000042.log") == 42
    assert segment.parse_segment_name(segment.segment_name((1 << 64) - 1)) == (1 << 64) - 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "42.log",
        "0000000000000000004x.log",
        "00000000000000000042.idx",
        "00000000000000000042.log\n",
        f"{'9' * 20}.log",
        "\N{ARABIC-INDIC DIGIT ONE}" * 20 + ".log",
    ],
)
def test_other_names_are_no_segments(name: str) -> None:
    with pytest.raises(WireError):
        segment.parse_segment_name(name)


@pytest.mark.parametrize("index", [-1, 1 << 64])
def test_an_index_that_cannot_be_has_no_name(index: int) -> None:
    with pytest.raises(WireError):
        segment.segment_name(index)


def test_a_length_tells_how_far_to_skip() -> None:
    assert segment.decode_length(STORED[0][: segment.LENGTH_SIZE]) == len(ENTRIES[0])


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        pytest.param(b"\0\0\0", Reason.TORN, id="cut"),
        pytest.param((ENTRY_MIN - 1).to_bytes(4, "big"), Reason.BAD_STRUCTURE, id="small"),
        pytest.param((ENTRY_MAX + 1).to_bytes(4, "big"), Reason.OVERSIZE, id="large"),
    ],
)
def test_a_length_that_no_entry_has_is_refused(head: bytes, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        segment.decode_length(head)
    assert caught.value.reason is reason


@pytest.mark.parametrize("size", [0, ENTRY_MIN - 1, ENTRY_MAX + 1])
def test_what_could_not_be_read_back_is_not_stored(size: int) -> None:
    with pytest.raises(WireError):
        encode_stored(bytes(size))
