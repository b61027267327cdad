"""Columns of varints: protobuf itself reads and writes the same bytes.

The other side is a message with `repeated uint64` and `repeated sint64`, declared here at run time.
Not covered: hostile bytes with their reasons (test_codec.py), whole messages.
"""

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rgd.wire.varints import packed, unpacked, unzigzag, zigzag

U64_MAX = (1 << 64) - 1
I64_MAX = (1 << 63) - 1
unsigned = st.lists(st.integers(0, 300) | st.integers(0, U64_MAX), min_size=1, max_size=20)
signed = st.lists(st.integers(-300, 300) | st.integers(-I64_MAX - 1, I64_MAX), max_size=20)
EDGES = sorted({0, U64_MAX, *((1 << bits) - less for bits in range(64) for less in (0, 1))})


def numbers_class() -> type[Message]:
    """`message Numbers { repeated uint64 plain = 1; repeated sint64 turned = 2; }`."""
    of = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="numbers.proto", syntax="proto3")
    message = file.message_type.add(name="Numbers")
    for place, (name, kind) in enumerate(
        [("plain", of.TYPE_UINT64), ("turned", of.TYPE_SINT64)], start=1
    ):
        message.field.add(name=name, number=place, type=kind, label=of.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Numbers"))


NUMBERS = numbers_class()


def body_of(field: str, numbers: list[int]) -> bytes:
    """What protobuf writes behind the field's tag and length (below 128 or two bytes)."""
    data = NUMBERS(**{field: numbers}).SerializeToString()
    return data[2:] if data[1:2] < b"\x80" else data[3:]


@pytest.mark.parametrize("number", EDGES)
def test_a_number_of_any_length_is_written_as_protobuf_writes_it(number: int) -> None:
    [data] = packed(np.array([[number, 1]], np.uint64))
    assert data == body_of("plain", [number, 1])
    assert unpacked([("numbers", data)], 2).tolist() == [[number, 1]]


@given(unsigned)
def test_columns_come_back_and_are_protobufs(numbers: list[int]) -> None:
    ones = [1] * len(numbers)
    data, none, last = packed(np.array([numbers, [0] * len(numbers), ones], np.uint64))
    assert (none, last) == (b"", body_of("plain", ones))
    assert data == (body_of("plain", numbers) if any(numbers) else b"")
    columns = [("first", data), ("none", b""), ("again", data)]
    assert unpacked(columns, len(numbers)).tolist() == [numbers, [0] * len(numbers), numbers]


@given(signed)
def test_signed_numbers_are_protobufs_sint64(numbers: list[int]) -> None:
    turned = zigzag(np.array(numbers, np.int64))
    assert unzigzag(turned).tolist() == numbers
    if any(numbers):
        assert packed(turned[None]) == [body_of("turned", numbers)]
