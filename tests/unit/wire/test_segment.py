"""Segments: names, lengths, damage in the middle, and finding the way back.

Not covered: any split of the bytes, torn ends (tests/property/test_wire_segment.py), and files.
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


def test_damage_ends_with_the_next_entry_that_has_a_checksum() -> None:
    bare = encode_stored(encode_entry(Entry("p", 9, 2, is_checksummed=False)))
    assert shown(read(bare + STORED[0])) == stored(9, 1)
    broken = turned(STORED[0], 20) + turned(STORED[1], 20) + bare
    assert shown(read(broken + STORED[2])) == [
        Damaged(0, len(broken), Reason.CHECKSUM),
        ("stored", 3),
    ]
    found = read(b"\xff" * 8 + bare + STORED[0])
    assert shown(found) == [Damaged(0, 8 + len(bare), Reason.OVERSIZE), ("stored", 1)]


def test_searching_ends_when_its_work_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    decoys = (ENTRY_MIN.to_bytes(4, "big") + b"\x0e\x01" + bytes(8)) * 10
    data = STORED[0] + b"\xff" * 4 + decoys + STORED[1]
    assert shown(read(data))[-1] == ("stored", 2)
    monkeypatch.setattr(segment, "_CANDIDATE_COST_MIN", segment.RESYNC_WORK_MAX)
    reader = SegmentReader()
    found = reader.feed(data) + reader.feed(STORED[2])
    assert not reader._buffer  # noqa: SLF001 -- what bounds memory
    assert shown(found + reader.finish()) == [
        ("stored", 1),
        Damaged(SIZE, len(data), Reason.OVERSIZE),
    ]


@pytest.mark.parametrize("index", [-1, 1 << 64])
def test_an_index_that_cannot_be_has_no_name(index: int) -> None:
    with pytest.raises(WireError):
        segment.segment_name(index)


@pytest.mark.parametrize("size", [0, ENTRY_MIN - 1, ENTRY_MAX + 1])
def test_what_could_not_be_read_back_is_not_stored(size: int) -> None:
    with pytest.raises(WireError):
        encode_stored(bytes(size))
