"""A Pulsar producer by hand: sends messages that no client would, frame by frame.

Law: what it sends is framed as Pulsar's protocol says (PulsarApi.proto, CRC32C included), and everything
inside the message's metadata is the caller's, so a broker takes it and a reader has to cope.
How: each message is a SEND command with `MessageMetadata` written field by field; answers are read and
counted, and looked into no further.
"""

import asyncio
import struct
from collections.abc import Iterable
from typing import Self

import google_crc32c

_CONNECT, _CONNECTED, _PRODUCER, _SEND, _PING, _PONG = 2, 3, 5, 6, 18, 19
_PRODUCER_SUCCESS, _SEND_RECEIPT, _SEND_ERROR, _ERROR = 17, 7, 8, 14
#: Numbers of `BaseCommand`'s fields are those of its types.
_MAGIC_CRC32C = b"\x0e\x01"

Field = tuple[int, int | bytes]


def message(*fields: Field) -> bytes:
    """Protocol buffers: numbers as varints, bytes with their length."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def metadata(sequence: int, *fields: Field) -> bytes:
    """`MessageMetadata` with what is required, and these fields."""
    return message((1, b"raw"), (2, sequence), (3, 1_700_000_000_000), *fields)


def encrypted(sequence: int) -> bytes:
    """Metadata of a message that was encrypted with a key that nobody has."""
    keys = message((1, b"a-key"), (2, bytes(256)))
    return metadata(sequence, (13, keys), (14, b"a-cipher"), (15, bytes(12)))


class RawProducer:
    """A connection with one producer on one topic of a broker on the loopback."""

    def __init__(self, port: int, topic: str) -> None:
        self._port = port
        self._topic = topic
        self.taken = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._command(_CONNECT, message((1, b"raw"), (4, 19)))
        await self._answer(_CONNECTED)
        self._command(_PRODUCER, message((1, self._topic.encode()), (2, 0), (3, 1)))
        await self._answer(_PRODUCER_SUCCESS)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def send(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        """Send (metadata, payload) pairs; returns once the broker has answered each."""
        count = 0
        for count, (about, payload) in enumerate(messages, start=1):
            command = message((1, _SEND), (_SEND, message((1, 0), (2, count), (3, 1))))
            body = struct.pack(">I", len(about)) + about + payload
            checked = _MAGIC_CRC32C + struct.pack(">I", google_crc32c.value(body)) + body
            head = struct.pack(">I", len(command)) + command
            self._writer.write(struct.pack(">I", len(head) + len(checked)) + head + checked)
            await self._writer.drain()
        wanted = self.taken + self.refused + count
        while self.taken + self.refused < wanted:
            kind = await self._next()
            self.taken += kind == _SEND_RECEIPT
            self.refused += kind == _SEND_ERROR

    def _command(self, kind: int, body: bytes) -> None:
        command = message((1, kind), (kind, body))
        self._writer.write(struct.pack(">II", len(command) + 4, len(command)) + command)

    async def _answer(self, wanted: int) -> None:
        kind = await self._next()
        while kind != wanted:
            assert kind not in {_ERROR, _SEND_ERROR}, "the broker refused"
            kind = await self._next()

    async def _next(self) -> int:
        """The type of the next command; pings are answered."""
        (size,) = struct.unpack(">I", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        assert frame[4] == 0x08, "a command begins with its type"
        kind = frame[5]
        if kind == _PING:
            self._command(_PONG, b"")
        return kind
