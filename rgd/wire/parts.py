"""Parts of bytes: sizes of what somebody else wrote are checked before it is read, what is too large is divided.

    [0e02][u32 size][BrokerEntryMetadata]           what a broker put in front of an entry; may be absent
    [0e01][u32 crc32c]                              of all that follows; may be absent
    [u32 metadata size][MessageMetadata][payload]

`frame` reads an entry of a log so, `pulsar_delivery` one that a broker delivers.
"""

import struct
from collections.abc import Sequence
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from rgd.wire.errors import Malformed, Oversize, Reason, TornFrame

MAGIC_BROKER_ENTRY_METADATA: Final = b"\x0e\x02"
MAGIC_CRC32C: Final = b"\x0e\x01"
MAGIC_SIZE: Final = 2

U32: Final = struct.Struct(">I")

_Form = TypeVar("_Form", bound=Message)


def check_size(what: str, size: int, limit: int) -> None:
    """Refuse what is too large or too many.

    Raises:
        Oversize: it is.
    """
    if size > limit:
        raise Oversize(what, size, limit)


def parsed(form: type[_Form], data: bytes, what: str) -> _Form:
    """A protobuf message.

    Raises:
        Malformed: it is none.
    """
    try:
        return form.FromString(data)
    except DecodeError as exc:
        raise Malformed(Reason.UNPARSABLE, f"{what}: {exc}") from exc


def read_u32(data: bytes | bytearray, position: int, what: str) -> int:
    """A number of four bytes.

    Raises:
        TornFrame: `data` ends before.
    """
    if position + U32.size > len(data):
        raise TornFrame(what, position + U32.size, len(data))
    value: int = U32.unpack_from(data, position)[0]
    return value


def sized(data: bytes, position: int, what: str, size_max: int) -> tuple[int, int]:
    """Where a part begins and ends whose size stands at `position`.

    Raises:
        Oversize: it is larger than `size_max`.
        TornFrame: `data` ends before.
    """
    size = read_u32(data, position, f"{what} size")
    check_size(what, size, size_max)
    begin = position + U32.size
    if begin + size > len(data):
        raise TornFrame(what, begin + size, len(data))
    return begin, begin + size


def broker_part(data: bytes, size_max: int) -> tuple[int, int]:
    """Where what a broker put in front begins and ends; (0, 0) where it added nothing.

    Raises:
        Oversize, TornFrame: as `sized`.
    """
    if not data.startswith(MAGIC_BROKER_ENTRY_METADATA):
        return 0, 0
    return sized(data, MAGIC_SIZE, "broker entry metadata", size_max)


def checksummed(data: bytes, position: int) -> tuple[int, int | None]:
    """Where what a checksum covers begins, and the checksum, None where there is none."""
    if not data.startswith(MAGIC_CRC32C, position):
        return position, None
    at = position + MAGIC_SIZE
    return at + U32.size, read_u32(data, at, "checksum")


def runs(
    sizes: Sequence[int], bytes_max: int, count_max: int | None = None
) -> list[tuple[int, int]]:
    """Divide things of these sizes into runs (begin, end) of at most so many bytes, and so many things."""
    found: list[tuple[int, int]] = []
    begin = taken = 0
    for at, size in enumerate(sizes):
        if taken + size > bytes_max or at - begin == count_max:
            found.append((begin, at))
            begin, taken = at, 0
        taken += size
    if begin < len(sizes):
        found.append((begin, len(sizes)))
    return found
