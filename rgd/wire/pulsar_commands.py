"""Pulsar's commands as a reader of a topic sends and receives them, in their frames.

    [u32 size of all that follows][u32 size][BaseCommand][entry, only behind a MESSAGE]

Law: a `FrameBuffer` keeps at most one frame of `FRAME_MAX` and what was fed last, whatever sizes a frame
declares. The entry of a larger frame is skipped as it comes, and its command is returned without it. A
command that cannot be read is a `WireError`; the stream cannot be read after it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rgd.wire.api_pb2 import BaseCommand, MessageIdData
from rgd.wire.errors import Malformed, Reason
from rgd.wire.parts import U32, check_size, parsed
from rgd.wire.pulsar_delivery import PAYLOAD_MAX

#: Largest command, in bytes.
COMMAND_MAX: Final = 64 << 10
#: Largest frame whose entry is kept, in bytes: Pulsar's own largest message, with room for what a broker adds.
FRAME_MAX: Final = PAYLOAD_MAX + (256 << 10) + COMMAND_MAX
#: What a client of this protocol's version understands; brokers of Pulsar 2.10 and later speak it.
PROTOCOL_VERSION: Final = 19
CLIENT_VERSION: Final = "rgd"

#: Types of commands: the numbers of `BaseCommand`'s fields.
CONNECT, CONNECTED, SUBSCRIBE, MESSAGE, FLOW = 2, 3, 4, 9, 11
SUCCESS, ERROR, CLOSE_CONSUMER, PING, PONG = 13, 14, 16, 18, 19
LOOKUP, LOOKUP_RESPONSE, AUTH_CHALLENGE, AUTH_RESPONSE = 23, 24, 36, 37

#: Of a lookup's answer.
REDIRECT, OWNER = 0, 1

#: Where a reader begins: before all messages, or behind them.
EARLIEST: Final = MessageIdData(ledgerId=(1 << 64) - 1, entryId=(1 << 64) - 1)
LATEST: Final = MessageIdData(ledgerId=(1 << 63) - 1, entryId=(1 << 63) - 1)

#: Pulsar's ServerError by number, by the names that pulsar-client has for them.
SERVER_ERRORS: Final = {
    1: "BrokerMetadataError", 2: "BrokerPersistenceError", 3: "AuthenticationError",
    4: "AuthorizationError", 5: "ConsumerBusy", 6: "ServiceUnitNotReady", 11: "TopicNotFound",
    14: "TooManyLookupRequestException", 15: "TopicTerminated", 17: "InvalidTopicName",
    18: "IncompatibleSchema", 19: "ConsumerAssignError", 22: "NotAllowedError",
}  # fmt: skip
UNKNOWN_ERROR: Final = "UnknownError"


class Frame(NamedTuple):
    """A command, with the entry that it delivers."""

    command: BaseCommand
    #: b"" behind other commands; None if it was larger than `FRAME_MAX` allows.
    entry: bytes | None


def framed(command: BaseCommand) -> bytes:
    """A command as it is sent."""
    body = command.SerializeToString()
    return U32.pack(len(body) + U32.size) + U32.pack(len(body)) + body


class FrameBuffer:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        #: Bytes of an entry that is too large, and still to come.
        self._skipping = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add received bytes; returns the frames that are complete now.

        Raises:
            WireError: the stream is not Pulsar's.
        """
        skipped = min(self._skipping, len(data))
        self._skipping -= skipped
        self._buffer += memoryview(data)[skipped:]
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        buffer = self._buffer
        if len(buffer) < 2 * U32.size:
            return None
        (total,) = U32.unpack_from(buffer)
        (size,) = U32.unpack_from(buffer, U32.size)
        check_size("command", size, COMMAND_MAX)
        if size + U32.size > total:
            raise Malformed(Reason.BAD_STRUCTURE, f"command: {size} bytes in a frame of {total}")
        start, end = 2 * U32.size, 2 * U32.size + size
        frame_end = U32.size + total
        is_kept = total <= FRAME_MAX
        if len(buffer) < (frame_end if is_kept else end):
            return None
        command = parsed(BaseCommand, bytes(buffer[start:end]), "command")
        entry = bytes(buffer[end:frame_end]) if is_kept else None
        self._skipping = max(0, frame_end - len(buffer))
        del buffer[:frame_end]
        return Frame(command, entry)
