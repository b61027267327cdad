"""What a broker delivers is read as it was published, or is a fault; whatever the bytes are, nothing is raised.

Entries of Pulsar's own code, of our own making, and hostile ones: arbitrary, cut, turned, with sizes that lie.
Streams are cut anywhere. Not covered: a broker that delivers them (tests/contract/exchange/test_unreadable.py).
"""

import contextlib
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.wire import pulsar_commands as wire
from rgd.wire.api_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandPing,
    DeliveredMetadata,
    SingleMessageMetadata,
)
from rgd.wire.errors import Oversize, WireError
from rgd.wire.pulsar_commands import Frame, FrameBuffer, framed
from rgd.wire.pulsar_delivery import (
    BATCH_MESSAGES_MAX,
    PAYLOAD_MAX,
    Delivered,
    DeliveredMessage,
    read_delivery,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors" / "entry_frames.json"
COMPRESSIONS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: lambda plain: lz4.block.compress(plain, store_size=False),
}
PLAIN = b"a report " * 50

keys = st.text(max_size=5)
payloads = st.binary(max_size=40)
flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=4)


def entry(metadata: DeliveredMetadata, payload: bytes) -> bytes:
    """An entry as a broker delivers it."""
    about = metadata.SerializeToString()
    body = struct.pack(">I", len(about)) + about + payload
    return b"\x0e\x01" + struct.pack(">I", google_crc32c.value(body)) + body


def in_batch(key: str, payload: bytes, *, declared: int | None = None) -> bytes:
    """One message of a batch."""
    size = len(payload) if declared is None else declared
    single = SingleMessageMetadata(partition_key=key.encode(), payload_size=size)
    about = single.SerializeToString()
    return struct.pack(">I", len(about)) + about + payload


def batch(*parts: bytes, count: int | None = None, compression: int = 0) -> bytes:
    plain = b"".join(parts)
    metadata = DeliveredMetadata(
        num_messages_in_batch=len(parts) if count is None else count,
        compression=compression,
        uncompressed_size=len(plain),
    )
    return entry(metadata, COMPRESSIONS[compression](plain))


def test_entries_of_pulsars_own_code_are_read() -> None:
    cases = json.loads(VECTORS.read_text())["frames"]
    read = [read_delivery(bytes.fromhex(case["frame_hex"])) for case in cases]
    assert [one.fault for one in read] == [None] * len(cases)
    assert [one.published_ms for one in read] == [case["publish_time"] for case in cases]
    payloads_read = [one.messages[0].payload for one in read]
    assert payloads_read == [bytes.fromhex(case["payload_hex"]) for case in cases]


@given(st.lists(st.tuples(keys, payloads), min_size=1), st.sampled_from(sorted(COMPRESSIONS)))
def test_a_batch_is_read_as_it_was_published(
    messages: list[tuple[str, bytes]], compression: int
) -> None:
    data = batch(*(in_batch(*one) for one in messages), compression=compression)
    expected = tuple(DeliveredMessage(at, *one) for at, one in enumerate(messages))
    assert read_delivery(data) == Delivered(expected, len(messages))


LYING = {
    "more messages than there are": batch(in_batch("k", b"v"), count=2),
    "two billion messages": batch(in_batch("k", b"v"), count=(1 << 31) - 1),
    "a larger payload in the batch": batch(in_batch("k", b"v", declared=1 << 30)),
    "a negative payload in the batch": batch(in_batch("k", b"v", declared=-1)),
    "metadata in the batch of gigabytes": batch(b"\x7f\xff\xff\xff"),
    "metadata of gigabytes": b"\xff\xff\xff\xff",
    "broker metadata of gigabytes": b"\x0e\x02\xff\xff\xff\xff",
    "a checksum of something else": batch(in_batch("k", b"v"))[:-1] + b"?",
    "a key that is no text": entry(DeliveredMetadata(partition_key=b"\xff"), b""),
    "encrypted": entry(DeliveredMetadata(encryption_keys=[b"a"]), b""),
    "a chunk": entry(DeliveredMetadata(num_chunks_from_msg=2), b""),
    **{
        f"compression {number}": entry(
            DeliveredMetadata(compression=number, uncompressed_size=1), b"?"
        )
        for number in (2, 3, 4)
    },
    "a payload that is too large": entry(DeliveredMetadata(), bytes(PAYLOAD_MAX + 1)),
}
for number, compress in COMPRESSIONS.items():
    if number:
        for name, payload, size in (
            ("none", b"\xff" * 40, 40),
            ("more", compress(PLAIN), len(PLAIN) - 1),
            ("less", compress(PLAIN), len(PLAIN) + 1),
            ("gigabytes", compress(PLAIN), (1 << 32) - 1),
            ("cut", compress(PLAIN)[:-1], len(PLAIN)),
        ):
            declared = DeliveredMetadata(compression=number, uncompressed_size=size)
            LYING[f"compression {number} that is {name}"] = entry(declared, payload)


@pytest.mark.parametrize("kind", LYING)
def test_an_entry_that_lies_is_a_fault_and_nothing_of_it_is_read(kind: str) -> None:
    delivered = read_delivery(LYING[kind])
    assert delivered.fault is not None
    assert not delivered.messages


@pytest.mark.parametrize(
    ("kind", "permits"),
    [
        ("metadata of gigabytes", 1),
        ("a checksum of something else", 1),
        ("more messages than there are", 2),
        ("two billion messages", (1 << 31) - 1),
    ],
)
def test_as_many_permits_go_back_as_the_broker_counted(kind: str, permits: int) -> None:
    assert read_delivery(LYING[kind]).permits == permits


@given(st.binary(max_size=200) | st.sampled_from([*LYING.values()]), flips)
def test_nothing_is_raised_whatever_is_delivered(data: bytes, at: list[tuple[float, int]]) -> None:
    turned = bytearray(data[:4096])
    for part, bit in at:
        if turned:
            turned[int(part * len(turned))] ^= 1 << bit
    delivered = read_delivery(bytes(turned))
    assert delivered.fault is None or not delivered.messages
    assert delivered.permits >= 1


def test_bombs_cost_no_more_memory_than_a_payload() -> None:
    bombs = []
    for compression, pack in COMPRESSIONS.items():
        plain = bytes(10 * PAYLOAD_MAX)
        for declared in (PAYLOAD_MAX, (1 << 32) - 1):
            metadata = DeliveredMetadata(compression=compression, uncompressed_size=declared)
            bombs.append(entry(metadata, pack(plain) if compression else plain[:1]))
    bombs.append(batch(bytes(6) * BATCH_MESSAGES_MAX, count=BATCH_MESSAGES_MAX + 1))
    tracemalloc.start()
    try:
        for bomb in bombs:
            read_delivery(bomb)
        assert tracemalloc.get_traced_memory()[1] < 4 * PAYLOAD_MAX
    finally:
        tracemalloc.stop()


# The stream.

ENTRIES = [b"", b"entry", bytes(300)]


def message(payload: bytes) -> bytes:
    """A MESSAGE and its entry, in a frame."""
    about = CommandMessage(consumer_id=1)
    about.message_id.ledgerId = about.message_id.entryId = 7
    command = BaseCommand(type=wire.MESSAGE, message=about).SerializeToString()
    size = struct.pack(">I", 4 + len(command) + len(payload))
    return size + struct.pack(">I", len(command)) + command + payload


def fed(pieces: list[bytes]) -> list[Frame]:
    buffer = FrameBuffer()
    return [frame for piece in pieces for frame in buffer.feed(piece)]


@given(st.lists(st.integers(1, 400), max_size=20))
def test_a_stream_is_cut_into_the_same_frames_however_it_comes(cuts: list[int]) -> None:
    ping = framed(BaseCommand(type=wire.PING, ping=CommandPing()))
    stream = ping + b"".join(message(one) for one in ENTRIES) + ping
    pieces, position = [], 0
    for cut in cuts:
        pieces.append(stream[position : position + cut])
        position += cut
    frames = fed([*pieces, stream[position:]])
    assert [frame.entry for frame in frames] == [b"", *ENTRIES, b""]
    kinds = [wire.PING, *[wire.MESSAGE] * len(ENTRIES), wire.PING]
    assert [frame.command.type for frame in frames] == kinds


@pytest.mark.parametrize("piece_bytes", [1 << 18, 1 << 24])
def test_a_frame_of_ten_megabytes_is_skipped_and_not_kept(piece_bytes: int) -> None:
    stream = message(bytes(10 << 20)) + message(b"behind it")
    pieces = [stream[at : at + piece_bytes] for at in range(0, len(stream), piece_bytes)]
    tracemalloc.start()
    try:
        frames = fed(pieces)
        assert tracemalloc.get_traced_memory()[1] < len(stream) + 3 * piece_bytes
    finally:
        tracemalloc.stop()
    assert [frame.entry for frame in frames] == [None, b"behind it"]
    assert frames[0].command.message.message_id.entryId == 7


def test_a_command_of_gigabytes_is_refused_at_once() -> None:
    with pytest.raises(Oversize):
        fed([b"\xff\xff\xff\xff\xff\xff\xff\xf0"])


@given(st.binary(max_size=60))
def test_a_stream_that_is_not_pulsars_ends_with_a_reason(stream: bytes) -> None:
    with contextlib.suppress(WireError):
        fed([stream])
