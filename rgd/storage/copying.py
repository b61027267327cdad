"""Copies logs out of a tier, for readers that take files only.

Law: a copied log is a log folder as its daemon wrote it; segments that are marked for deletion are left out.
"""

from pathlib import Path

from rgd.storage.objects import Objects, is_url
from rgd.storage.tier import SEGMENT, LogTier, find_logs
from rgd.wire.segment import segment_name


def copy_logs(
    objects: Objects, folder: Path, from_ms: int | None = None, to_ms: int | None = None
) -> int:
    """Copy the segments of all logs in a tier below a folder; how many there were.

    By their manifests, segments are left out that end before `from_ms` or begin at `to_ms` or later.

    Raises:
        TierError: the tier cannot be read.
        OSError: the folder cannot be written.
    """
    count = 0
    for prefix in find_logs(objects):
        tier = LogTier(objects, prefix)
        target = folder / prefix
        target.mkdir(parents=True, exist_ok=True)
        for segment in tier.list().segments:
            is_before = from_ms is not None and segment.last_ms < from_ms
            if is_before or (to_ms is not None and segment.first_ms >= to_ms):
                continue
            name = tier.name_of(segment.first_index, SEGMENT)
            with (target / segment_name(segment.first_index)).open("wb") as file:
                for chunk in objects.chunks(name, 0, segment.size):
                    file.write(chunk)
            count += 1
    return count


def is_bucket(place: str) -> bool:
    """Whether a place has to be copied before its segments are files."""
    return is_url(place) and not place.startswith("file://")
