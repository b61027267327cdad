"""Entries: Pulsar's own bytes both ways, and every way in which bytes can fail to be an entry.

Not covered: whole ranges of values (tests/property/test_wire_round_trips.py), entries in files
(test_segment.py), and Pulsar's own code reading ours (that needs a JVM).
"""

from dataclasses import replace
from typing import Any

import google_crc32c
import pytest

from rgd.errors import Unavailable
from rgd.wire import frame
from rgd.wire.errors import ChecksumMismatch, Reason, WireError
from rgd.wire.frame import BrokerEntryMetadata, Entry, decode_entry, encode_entry
from tests.support import wire_values
from tests.support.cases import cases, refused

FRAMES = wire_values.vectors("entry_frames.json")["frames"]
#: producer_name "p", sequence_id 1, publish_time 2.
METADATA = bytes.fromhex("0a017010011802")
U32_MAX = (1 << 32) - 1


def u32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def checksummed(covered: bytes) -> bytes:
    return b"\x0e\x01" + u32(google_crc32c.value(covered)) + covered


def plain(metadata: bytes, payload: bytes = b"") -> bytes:
    return u32(len(metadata)) + metadata + payload


@pytest.mark.parametrize("vector", FRAMES, ids=lambda v: f"{v['kind']}-{v['producer_name']}")
def test_what_pulsar_wrote_reads_as_it_says_and_is_written_back(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["frame_hex"])
    entry = decode_entry(data)
    for field in ("broker_timestamp", "index", "producer_name", "sequence_id", "publish_time"):
        assert getattr(entry, field) == vector[field]
    assert entry.payload.hex() == vector["payload_hex"]
    assert encode_entry(entry) == data


def test_pulsars_properties_are_read_and_its_other_fields_kept() -> None:
    entry = decode_entry(bytes.fromhex(FRAMES[3]["frame_hex"]))
    assert entry.properties == (("k", "v"),)
    # Field 6 is Pulsar's partition_key.
    assert entry.unknown == b"\x32\x02g1"


@pytest.mark.parametrize("vector", FRAMES, ids=lambda v: f"{v['kind']}-{v['producer_name']}")
def test_peeking_needs_only_the_first_bytes(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["frame_hex"])
    peeked = frame.peek_broker_entry_metadata(data[: frame.PEEK_SIZE])
    assert peeked == decode_entry(data).broker


@pytest.mark.parametrize("vector", FRAMES, ids=lambda v: f"{v['kind']}-{v['producer_name']}")
def test_what_the_broker_adds_leaves_the_producers_bytes_as_they_are(
    vector: dict[str, Any],
) -> None:
    """PIP-70: the part stands in front, and no checksum is calculated again."""
    entry = decode_entry(bytes.fromhex(vector["frame_hex"]))
    bare = encode_entry(replace(entry, broker=None))
    for broker in (BrokerEntryMetadata(1, 2), BrokerEntryMetadata(U32_MAX, U32_MAX)):
        stamped = encode_entry(replace(entry, broker=broker))
        assert stamped.endswith(bare)
        assert frame.headers_and_payload(stamped) == bare


@cases(
    "broker, hex_",
    {
        "both": (BrokerEntryMetadata(1_700_000_000_000, 41), "00000009 0880d095ffbc311029"),
        "timestamp": (BrokerEntryMetadata(1_700_000_000_000), "00000007 0880d095ffbc31"),
        "index-0": (BrokerEntryMetadata(index=0), "00000002 1000"),
        "empty": (BrokerEntryMetadata(), "00000000"),
    },
)
def test_the_brokers_part_is_as_pulsars_code_has_it(broker: BrokerEntryMetadata, hex_: str) -> None:
    head = b"\x0e\x02" + bytes.fromhex(hex_)
    data = encode_entry(Entry("p", 1, 2, broker=broker))
    assert data.startswith(head)
    assert decode_entry(data).broker == broker


def test_fields_of_the_brokers_part_that_rgd_does_not_know_travel_along() -> None:
    data = b"\x0e\x02" + u32(4) + b"\x10\x05\x18\x01" + checksummed(plain(METADATA))
    entry = decode_entry(data)
    assert entry.broker == BrokerEntryMetadata(index=5, unknown=b"\x18\x01")
    assert encode_entry(entry) == data


BROKEN = {
    "empty": (b"", Reason.TORN),
    "half-a-magic": (b"\x0e", Reason.TORN),
    "broker-size-cut": (b"\x0e\x02\x00\x00", Reason.TORN),
    "broker-part-cut": (b"\x0e\x02" + u32(3) + b"\x10", Reason.TORN),
    "broker-size-negative": (b"\x0e\x02" + u32(U32_MAX), Reason.OVERSIZE),
    "broker-part-bad": (b"\x0e\x02" + u32(1) + b"\x08", Reason.UNPARSABLE),
    "nothing-behind-broker-part": (b"\x0e\x02" + u32(0), Reason.TORN),
    "checksum-cut": (b"\x0e\x01\x00\x00", Reason.TORN),
    "nothing-behind-checksum": (b"\x0e\x01" + u32(0), Reason.TORN),
    "one-byte-changed": (checksummed(plain(METADATA))[:-1] + b"\x03", Reason.CHECKSUM),
    "metadata-cut": (u32(99) + METADATA, Reason.TORN),
    "metadata-cut-checksummed": (checksummed(u32(99)), Reason.TORN),
    "metadata-size-negative": (u32(U32_MAX), Reason.OVERSIZE),
    "metadata-bad": (plain(b"\x0a\x05"), Reason.UNPARSABLE),
    "required-field-missing": (plain(b"\x0a\x01p"), Reason.MISSING),
    "property-no-value": (plain(METADATA + b"\x22\x03\x0a\x01k"), Reason.MISSING),
    "name-not-utf8": (plain(b"\x0a\x01\xff\x10\x01\x18\x02"), Reason.BAD_NAME),
    "payload-large": (plain(METADATA, bytes(frame.PAYLOAD_MAX + 1)), Reason.OVERSIZE),
    "entry-large": (bytes(frame.ENTRY_MAX + 1), Reason.OVERSIZE),
}


@cases("data, reason", BROKEN)
def test_what_is_no_entry_is_refused_with_its_reason(data: bytes, reason: Reason) -> None:
    with refused(reason):
        decode_entry(data)


@pytest.mark.parametrize("at", range(len(bytes.fromhex(FRAMES[5]["frame_hex"]))))
def test_an_entry_cut_anywhere_is_refused(at: int) -> None:
    with pytest.raises(WireError):
        decode_entry(bytes.fromhex(FRAMES[5]["frame_hex"])[:at])


def test_a_mismatch_says_where_the_checksum_is() -> None:
    data = bytearray.fromhex(FRAMES[5]["frame_hex"])
    data[-1] ^= 1
    with pytest.raises(ChecksumMismatch) as caught:
        decode_entry(bytes(data))
    assert caught.value.offset == data.index(b"\x0e\x01") + 2


UNWRITABLE = {
    "sequence-negative": (Entry("p", -1, 2), Reason.BAD_NUMBER),
    "time-large": (Entry("p", 1, 1 << 64), Reason.BAD_NUMBER),
    "name-no-unicode": (Entry("\ud800", 1, 2), Reason.BAD_NAME),
    "index-negative": (Entry("p", 1, 2, broker=BrokerEntryMetadata(index=-1)), Reason.BAD_NUMBER),
    "payload-large": (Entry("p", 1, 2, bytes(frame.PAYLOAD_MAX + 1)), Reason.OVERSIZE),
    "metadata-large": (Entry("p" * frame.METADATA_MAX, 1, 2), Reason.OVERSIZE),
}


@cases("entry, reason", UNWRITABLE)
def test_what_could_not_be_read_back_is_not_written(entry: Entry, reason: Reason) -> None:
    with refused(reason):
        encode_entry(entry)


def test_the_slow_checksum_is_refused_with_the_remedy() -> None:
    with pytest.raises(Unavailable, match="reinstall"):
        frame.require_fast_crc32c("python")
