"""What hostile reports cost: a fixed multiple of their bytes in memory, and nothing above the largest message.

A report of 10 MB is refused by its size, before anything of it is decoded. Below that, each field that may repeat is
repeated in its smallest form, by itself and inside each part of a message. Sizes are scaled down: the multiple is
the same. Not covered: memory inside protobuf's C code, and what a value does in the core (tests/property/test_slots.py).
"""

import contextlib
import tracemalloc

import pytest
from google.protobuf.descriptor import FieldDescriptor

from rgd.wire import codec
from rgd.wire.errors import WireError
from rgd.wire.name_dictionary import NameDecoders
from rgd.wire.pulsar_usage import decode_stock_report
from rgd.wire.usage_pb2 import DESCRIPTOR
from tests.support.raw_pulsar import message

BODY_BYTES = 64 << 10
#: Bytes in memory for a byte of the message; measured: 12.
MULTIPLE_MAX = 30

#: A key and the smallest value, as often as fits: numbers, empty and short texts or messages.
BODIES = [
    bytes([number << 3 | kind]) + value
    for number in range(1, 16)
    for kind, value in ((0, b"\x01"), (2, b"\x00"), (2, b"\x01\x00"))
] + [b"\x00", b"\xff"]

HEAD = b"\x01\x00"


def hostile() -> list[bytes]:
    """Bodies by themselves, and as the content of each field that is a message."""
    parts: list[FieldDescriptor] = [
        field
        for kind in DESCRIPTOR.message_types_by_name.values()
        for field in kind.fields
        if field.message_type is not None
    ]
    whole = [body * (BODY_BYTES // len(body)) for body in BODIES]
    numbers = sorted({field.number for field in parts})
    return whole + [message((number, body)) for number in numbers for body in whole]


def test_memory_is_a_multiple_of_a_reports_bytes() -> None:
    decoders = NameDecoders()
    tracemalloc.start()
    try:
        for body in hostile():
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with contextlib.suppress(WireError):
                codec.decode(HEAD + body, decoders)
            with contextlib.suppress(WireError):
                decode_stock_report(body)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak <= MULTIPLE_MAX * len(body), body[:20]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"\x01\x00", b"\x01\x01"])
def test_ten_megabytes_are_refused_for_one_copy_of_them(head: bytes) -> None:
    data = head + bytes(10 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            codec.decode(data, NameDecoders())
        assert tracemalloc.get_traced_memory()[1] < 1.1 * len(data)
    finally:
        tracemalloc.stop()
