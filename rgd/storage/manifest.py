"""What a segment of a tier holds, as the JSON object beside it says.

Law: a manifest is written once, after its segment, and never changed: where it exists, the segment is
there whole. So readers and retention learn all that they need without reading a segment.
"""

import json
from dataclasses import asdict, dataclass, fields
from typing import Final

from rgd.storage.errors import TierDamaged

VERSION: Final = 1
#: Largest manifest that is read, in bytes.
MANIFEST_BYTES_MAX: Final = 4096

_INT_MAX: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that nothing is appended to any more; times are the broker's, in milliseconds since 1970."""

    first_index: int
    last_index: int
    #: Of the first and the last entry.
    first_ms: int
    last_ms: int
    #: In bytes: of the segment alone in a tier, with its sparse index on disk.
    size: int


@dataclass(frozen=True, slots=True)
class TieredSegment(ClosedSegment):
    """A closed segment in a tier."""

    #: Of all its bytes.
    crc32c: int


def encode_manifest(segment: TieredSegment) -> bytes:
    """Write a manifest."""
    return json.dumps({"version": VERSION, **asdict(segment)}, indent=1).encode() + b"\n"


def decode_manifest(data: bytes, name: str) -> TieredSegment:
    """Read a manifest.

    Raises:
        TierDamaged: it is none; a later version is none either.
    """
    try:
        decoded = json.loads(data[:MANIFEST_BYTES_MAX])
    except (ValueError, RecursionError) as error:
        raise TierDamaged(f"{name}: not a manifest: {type(error).__name__}") from error
    if not isinstance(decoded, dict) or decoded.get("version") != VERSION:
        raise TierDamaged(f"{name}: not a manifest of version {VERSION}")
    return segment_from(decoded, name)


def segment_from(decoded: dict[str, object], name: str) -> TieredSegment:
    """A segment from the fields of an object.

    Raises:
        TierDamaged: one is missing or is no number that can be right.
    """
    values: list[int] = []
    for field in fields(TieredSegment):
        value = decoded.get(field.name)
        if type(value) is not int or not 0 <= value <= _INT_MAX:
            raise TierDamaged(f"{name}: {field.name}: expected a whole number from 0 to 2^64 - 1")
        values.append(value)
    segment = TieredSegment(*values)
    if segment.last_index < segment.first_index:
        raise TierDamaged(f"{name}: the last index is below the first")
    return segment
