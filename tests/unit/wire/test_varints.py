"""Columns of varints: protobuf itself reads and writes the same bytes.

The other side is a message with `repeated uint64` and `repeated sint64`, declared here at run time;
whatever the bytes are, one that reads them one by one. Not covered: whole messages (test_codec.py).
"""

from collections.abc import Sequence

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rgd.wire import varints
from rgd.wire.errors import Malformed, Reason
from rgd.wire.varints import VARINT_MAX, Unsigned, packed

U64_MAX = (1 << 64) - 1
unsigned = st.lists(st.integers(0, 300) | st.integers(0, U64_MAX), min_size=1, max_size=20)
#: The least and the most that is written in each number of bytes.
BOUNDS = [
    ((1 << 7 * (size - 1)) if size > 1 else 0, min((1 << 7 * size) - 1, U64_MAX))
    for size in range(1, VARINT_MAX + 1)
]
of_any_size = st.sampled_from(BOUNDS).flatmap(lambda bounds: st.integers(*bounds))
Read = list[list[int]] | tuple[Reason, str]
TOO_LARGE = (Reason.BAD_NUMBER, "a number has more than 64 bits")
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


def unpacked(columns: Sequence[tuple[str, bytes]], rows: int) -> Unsigned:
    """Columns of one length."""
    names, data = zip(*columns, strict=True)
    return varints.unpacked(names, data, [rows] * len(columns)).reshape(len(columns), rows)


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


def varint(number: int, more: int) -> bytes:
    """A number as a varint that is longer than it must be by so many bytes of nothing."""
    groups = [number >> bits & 0x7F for bits in range(0, max(1, number.bit_length()), 7)]
    groups += [0] * more
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


#: Mostly what a writer could have written; else too long, too large, or torn.
pieces = (
    of_any_size.map(lambda number: varint(number, 0))
    | st.builds(varint, of_any_size, st.integers(0, 2))
    | st.builds(varint, st.integers(0, 1 << 80), st.integers(0, 2))
    | st.binary(max_size=12)
)


def read_one_by_one(columns: Sequence[tuple[str, bytes]], rows: int) -> Read:
    """The columns' numbers, or what is wrong first: any column's bytes, counts, ends, numbers."""
    for what, data in columns:
        if len(data) > VARINT_MAX * rows:
            return Reason.BAD_COLUMNS, f"{what}: {len(data)} bytes for {rows} rows"
    for what, data in columns:
        if data and (count := sum(byte < 0x80 for byte in data)) != rows:
            return Reason.BAD_COLUMNS, f"{what}: {count} values for {rows} rows"
    if any(data[-1:] >= b"\x80" for _, data in columns):
        return Reason.BAD_COLUMNS, "a column ends within a number"
    numbers = [numbers_of(data) for _, data in columns]
    if any(size > VARINT_MAX or number > U64_MAX for column in numbers for size, number in column):
        return TOO_LARGE
    return [[number for _, number in column] or [0] * rows for column in numbers]


def numbers_of(data: bytes) -> list[tuple[int, int]]:
    """How many bytes each number has, and the number."""
    numbers, size, number = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << 7 * size
        size += 1
        if byte < 0x80:
            numbers.append((size, number))
            size = number = 0
    return numbers


def read(columns: Sequence[tuple[str, bytes]], rows: int) -> Read:
    """The same by numpy."""
    try:
        numbers: list[list[int]] = unpacked(columns, rows).tolist()
    except Malformed as error:
        return error.reason, str(error)
    return numbers


@given(st.lists(st.lists(pieces, max_size=6).map(b"".join), min_size=1, max_size=4), st.data())
def test_any_bytes_are_read_or_refused_as_one_by_one(
    columns: list[bytes], data: st.DataObject
) -> None:
    counts = {sum(byte < 0x80 for byte in column) for column in columns}
    rows = data.draw(st.sampled_from(sorted({0, 1} | counts | {*map(len, columns)})))
    named = [(f"column-{place}", column) for place, column in enumerate(columns)]
    assert read(named, rows) == read_one_by_one(named, rows)
