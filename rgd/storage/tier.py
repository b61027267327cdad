"""One log in a tier: segments go up, are marked for deletion and are deleted, each step resumable.

    PLACE/<log.name>/<broker>/<log>/00000000000000000000.log      a segment, as it was on disk
    PLACE/<log.name>/<broker>/<log>/00000000000000000000.idx      its sparse index
    PLACE/<log.name>/<broker>/<log>/00000000000000000000.json     its manifest, created last
    PLACE/<log.name>/<broker>/<log>/00000000000000000000.deleted  it is about to be deleted, created first
    PLACE/rgd-tier.json                                           which tier it is (`identity`)

`<log>` separates the logs of one broker: a broker that lost its disk numbers from 0 again.

Law: a segment counts as uploaded if and only if its manifest is there, and as gone as soon as it is
marked. Everything is created and nothing overwritten, so that a crash after any step, or two uploaders at
once, loses nothing and doubles nothing: the second one finds the same bytes, or gets
`TierConflict`. What a crash tore before its manifest, the beginning of the same bytes or nothing, is no object yet
and is replaced. Deleting removes the mark last; a mark without a segment is a deletion to finish.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import google_crc32c

from rgd.storage.errors import ObjectMissing, TierConflict, TierDamaged
from rgd.storage.headers import read_chunks
from rgd.storage.identity import require_identity
from rgd.storage.manifest import (
    MANIFEST_BYTES_MAX,
    TieredSegment,
    decode_manifest,
    encode_manifest,
)
from rgd.storage.objects import Objects
from rgd.storage.ranges import Ranges

SEGMENT: Final = ".log"
MARKS: Final = ".idx"
MANIFEST: Final = ".json"
DELETED: Final = ".deleted"

_NAME: Final = re.compile(r"(?:(.*)/)?([0-9]{20})(\.log|\.idx|\.json|\.deleted)")
#: In the order in which they are deleted; the mark goes after them.
_PARTS: Final = (SEGMENT, MARKS, MANIFEST)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a tier holds of one log."""

    #: Uploaded and not marked, by first index.
    segments: tuple[TieredSegment, ...] = ()
    #: Marked and not deleted yet, as far as their manifests still say what they were.
    marked: tuple[TieredSegment, ...] = ()
    #: First indexes of marks whose manifests are gone already.
    remnants: frozenset[int] = frozenset()


def find_logs(objects: Objects, below: str = "") -> list[str]:
    """The prefixes of the logs in a tier, by name.

    Raises:
        TierError: it cannot be listed.
    """
    found = {
        match[1] or ""
        for name in objects.names(below)
        if (match := _NAME.fullmatch(name)) and match[3] == MANIFEST
    }
    return sorted(found)


def checksum_of(data: bytes) -> int:
    """The CRC32C that a manifest states."""
    crc: int = google_crc32c.value(data)
    return crc


class LogTier:
    """The part of a tier that holds one log."""

    def __init__(self, objects: Objects, prefix: str, identity: str | None = None) -> None:
        self.objects = objects
        self.prefix = prefix
        #: Of the tier that the log was uploaded to; None: whatever is there.
        self.identity = identity

    def name_of(self, first_index: int, suffix: str) -> str:
        """The name of one of a segment's objects."""
        base = f"{first_index:020}{suffix}"
        return f"{self.prefix}/{base}" if self.prefix else base

    def check(self) -> None:
        """Make sure that this is the tier that is remembered, if one is.

        Raises:
            TierChanged: it is not.
            TierError: it cannot be told.
        """
        if self.identity is not None:
            require_identity(self.objects, self.identity)

    def list(
        self,
        known: Mapping[int, TieredSegment] | None = None,
        on_damaged: Callable[[TierDamaged], None] | None = None,
    ) -> Listing:
        """What is there.

        Args:
            known: manifests that were read before; they never change and are not read again.
            on_damaged: receives what is wrong with a manifest, whose segment is then left out.

        Raises:
            TierError: it cannot be listed, or a manifest cannot be read.
        """
        found: dict[str, set[int]] = {MANIFEST: set(), DELETED: set()}
        for name, size in self.objects.names(self.prefix).items():
            match = _NAME.fullmatch(name)
            if match and match[3] == MANIFEST and not size:
                # Its creation was cut off, so the segment is not uploaded.
                continue
            if match and (match[1] or "") == self.prefix and match[3] in found:
                found[match[3]].add(int(match[2]))
        segments: list[TieredSegment] = []
        marked: list[TieredSegment] = []
        for first_index in sorted(found[MANIFEST]):
            try:
                segment = (known or {}).get(first_index) or self._manifest(first_index)
            except TierDamaged as error:
                if on_damaged is None:
                    raise
                on_damaged(error)
                continue
            if segment is not None:
                (marked if first_index in found[DELETED] else segments).append(segment)
        remnants = found[DELETED] - {segment.first_index for segment in marked}
        return Listing(tuple(segments), tuple(marked), frozenset(remnants))

    def put(self, segment: TieredSegment, data: bytes, marks: bytes) -> None:
        """Upload a segment, its sparse index and then its manifest; what is there already is kept.

        Raises:
            TierConflict: another segment has this name.
            TierError: it is not known how far it came; call it again.
        """
        name = self.name_of(segment.first_index, SEGMENT)
        if not self.objects.create(name, data):
            # A crash before the manifest, or another uploader: fine where the bytes are the same.
            there = self.objects.read(name)
            if self._is_torn(segment, there, data):
                self.objects.replace(name, data)
            elif there != data:
                raise TierConflict(
                    f"{self.objects.place}: {name}: another log has this segment "
                    f"({len(there):,} bytes instead of {len(data):,}); nothing was overwritten"
                )
        if marks:
            self.objects.create(self.name_of(segment.first_index, MARKS), marks)
        manifest = encode_manifest(segment)
        name = self.name_of(segment.first_index, MANIFEST)
        if self.objects.create(name, manifest):
            return
        if not self.objects.size(name):
            self.objects.replace(name, manifest)
        elif self._manifest(segment.first_index) != segment:
            raise TierConflict(f"{self.objects.place}: {name}: it describes another segment")

    def mark(self, first_index: int) -> None:
        """Mark a segment for deletion: from now on no reader begins with it.

        Raises:
            TierError: it may be marked or not; call it again.
        """
        self.objects.create(self.name_of(first_index, DELETED), b"")

    def delete(self, first_index: int) -> None:
        """Delete a marked segment, its mark last.

        Raises:
            TierError: a part of it may be left; call it again.
        """
        for suffix in (*_PARTS, DELETED):
            self.objects.delete(self.name_of(first_index, suffix))

    def verify(self, segment: TieredSegment) -> None:
        """Read a whole segment and hold it against its manifest.

        Raises:
            TierDamaged: it is not what was uploaded.
            ObjectMissing, TierError: it cannot be read.
        """
        name = self.name_of(segment.first_index, SEGMENT)
        size = self.objects.size(name)
        stored: int = 0
        for chunk in read_chunks(Ranges(partial(self.objects.read_range, name), size), 0):
            stored = google_crc32c.extend(stored, chunk)
        if (size, stored) != (segment.size, segment.crc32c):
            raise TierDamaged(
                f"{self.objects.place}: {name}: {size:,} bytes with checksum {stored:08x}; its manifest "
                f"says {segment.size:,} with {segment.crc32c:08x}"
            )

    def _is_torn(self, segment: TieredSegment, there: bytes, data: bytes) -> bool:
        """Whether a segment is the beginning of ours, and was never committed by a manifest."""
        if len(there) >= len(data) or not data.startswith(there):
            return False
        try:
            return not self.objects.size(self.name_of(segment.first_index, MANIFEST))
        except ObjectMissing:
            return True

    def _manifest(self, first_index: int) -> TieredSegment | None:
        """The manifest of a segment; None: it was deleted meanwhile."""
        name = self.name_of(first_index, MANIFEST)
        try:
            data = self.objects.read_range(name, 0, MANIFEST_BYTES_MAX)
            segment = decode_manifest(data, name)
        except ObjectMissing:
            return None
        if segment.first_index != first_index:
            raise TierDamaged(f"{name}: it describes the segment {segment.first_index}")
        return segment
