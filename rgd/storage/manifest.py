"""What a segment of a tier holds, as the JSON object beside it says.

Law: a manifest is written once, after its segment, and never changed: where it exists, the segment is
there whole. So readers and retention learn all that they need without reading a segment.
"""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from rgd.storage.errors import TierDamaged

VERSION: Final = 1
#: Largest manifest that is read, in bytes.
MANIFEST_BYTES_MAX: Final = 4096

#: What an object of rgd's own in a tier may say.
Whole = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Value = TypeVar("_Value")


class _Versioned(msgspec.Struct):
    version: Literal[1]


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that nothing is appended to any more; times are the broker's, in milliseconds since 1970."""

    first_index: Whole
    last_index: Whole
    #: Of the first and the last entry.
    first_ms: Whole
    last_ms: Whole
    #: In bytes: of the segment alone in a tier, with its sparse index on disk.
    size: Whole


@dataclass(frozen=True, slots=True)
class TieredSegment(ClosedSegment):
    """A closed segment in a tier."""

    #: Of all its bytes.
    crc32c: Whole

    def __post_init__(self) -> None:
        if self.last_index < self.first_index:
            raise ValueError("the last index is below the first")


def encode_manifest(segment: TieredSegment) -> bytes:
    """Write a manifest."""
    return json.dumps({"version": VERSION, **asdict(segment)}, indent=1).encode() + b"\n"


def decode_manifest(data: bytes, name: str) -> TieredSegment:
    """Read a manifest.

    Raises:
        TierDamaged: it is none; a later version is none either.
    """
    return read_versioned(TieredSegment, data[:MANIFEST_BYTES_MAX], name)


def read_versioned(kind: type[_Value], data: bytes, name: str) -> _Value:
    """What an object of rgd's own in a tier says, of `VERSION`.

    Raises:
        TierDamaged: it is none.
    """
    try:
        msgspec.json.decode(data, type=_Versioned)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TierDamaged(f"{name}: not of version {VERSION}, or damaged: {error}") from error
