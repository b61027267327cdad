"""Where the segments of some logs are: files, and objects of a tier, read alike by ranges.

Law: a search opens no segment whose manifest states its times. What a tier has not committed by a manifest, or
has marked for deletion, is left out, on disk and in a bucket alike (`rgd.storage.tier`).

A place is a log folder (searched with its subfolders), one segment file, the URL of a tier, or, for a report, a lake:
its files of minutes and rounds are then what is read (`rgd.analysis.lake_reader`).
"""

import errno
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from stat import S_ISREG
from typing import Final

from rgd.analysis import lake_names
from rgd.analysis.asked import TimeRange
from rgd.analysis.errors import BadLake, NoLog
from rgd.storage.errors import ObjectMissing
from rgd.storage.headers import header_at
from rgd.storage.manifest import TieredSegment, decode_manifest
from rgd.storage.marks import INDEX_BYTES_MAX, Mark, decode_marks
from rgd.storage.objects import Objects, folder_of, patient
from rgd.storage.ranges import Fetch, Ranges
from rgd.storage.tier import DELETED, MANIFEST, MARKS, SEGMENT, LogTier, find_logs
from rgd.wire.errors import WireError
from rgd.wire.segment import parse_segment_name

#: A log is at least so many times as large as the minutes and rounds that a lake has of it.
LAKE_RATIO: Final = 8
DAY_MS: Final = 86_400_000
#: At the root of a disk; nobody else may read it.
_FILE_SYSTEMS_OWN: Final = "lost+found"
_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that any task can read."""

    #: A file's path, or a name in the bucket `place`.
    path: str
    place: str = ""
    #: In bytes, when it was found.
    size: int = 0
    #: A tier's manifest of it; None: nothing is known without opening it.
    manifest: TieredSegment | None = None
    #: Receives how many bytes were fetched.
    count: Callable[[int], object] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, file: Path, manifest: TieredSegment | None = None) -> "Segment":
        """The segment in a file, which is not opened."""
        stat = file.stat()
        if not S_ISREG(stat.st_mode) or not os.access(file, os.R_OK):
            raise OSError(errno.EACCES, "expected a readable regular file", str(file))
        return cls(str(file), size=stat.st_size, manifest=manifest)

    @property
    def name(self) -> str:
        """Where it is, for people; unique."""
        return f"{self.place}/{self.path}" if self.place else self.path

    @property
    def is_of_lake(self) -> bool:
        """Whether it is a file of a lake rather than a segment."""
        return self.path.endswith(lake_names.PARQUET)

    @property
    def log_bytes(self) -> int:
        """About how many bytes of log it stands for."""
        return self.size * LAKE_RATIO if self.is_of_lake else self.size

    @property
    def log(self) -> str:
        """Where the other segments of its log are."""
        return self.name.rpartition("/")[0]

    @property
    def first_index(self) -> int:
        """The index of its first entry, as its name states.

        Raises:
            NoLog: it has another name.
        """
        try:
            return parse_segment_name(self.path.rpartition("/")[2])
        except WireError as exc:
            raise NoLog(f"{self.name}: {exc}; a stream reads logs in order by these names") from exc

    def ranges(self) -> Ranges:
        """Its bytes."""
        return Ranges(self._fetch(self.path), self.size)

    def marks(self) -> list[Mark]:
        """Its sparse index; empty where there is none."""
        with suppress(ObjectMissing, OSError):
            fetch = self._fetch(self.path.removesuffix(SEGMENT) + MARKS)
            return decode_marks(fetch(0, INDEX_BYTES_MAX))
        return []

    def _fetch(self, path: str) -> Fetch:
        read = patient(self.place).read_range if self.place else _read_file

        def fetch(offset: int, size: int) -> bytes:
            data = read(path, offset, size)
            if self.count is not None:
                self.count(len(data))
            return data

        return fetch


#: Manifests of a bucket's logs, by the URL of the log and first index; they never change.
Manifests = dict[str, dict[int, TieredSegment]]


def find_segments(
    places: Sequence[str], known: Manifests | None = None, *, lakes: bool = False
) -> tuple[Segment, ...]:
    """Every segment at some places, each once, logs together and in order.

    Args:
        places: where to look.
        known: manifests of buckets that were read before, and afterwards what is there now.
        lakes: whether a place may be a lake.

    Raises:
        NoLog: a place is not there, cannot be read, or holds no segment.
        TierError: a bucket cannot be listed.
    """
    if not places:
        raise NoLog("no log was named; give the folders that the daemons log to (`log.dir`)")
    known = {} if known is None else known
    found = {segment for place in places for segment in _segments_at(place, known)}
    lake = next((one.place for one in found if one.is_of_lake and not lakes), None)
    if lake is not None:
        raise NoLog(f"{lake} is a lake; give the logs, or read its Parquet")
    return tuple(sorted(found, key=lambda segment: (segment.log, segment.name)))


def _segments_at(place: str, known: Manifests) -> list[Segment]:
    try:
        folder = folder_of(place)
        if folder is not None and not folder.exists():
            raise NoLog(f"{place} does not exist; give a log folder or a segment file")
        found = list(_in_bucket(place.rstrip("/"), known) if folder is None else _on_disk(folder))
    except ValueError as exc:
        raise NoLog(str(exc)) from exc
    except OSError as exc:
        raise NoLog(f"{exc.filename or place} cannot be read: {exc.strerror or exc}") from exc
    if not found:
        raise NoLog(
            f"{place} holds no segment files (20 digits and .log); give the folder that a daemon "
            "logs to (`log.dir`), one above it, or a tier"
        )
    return found


def _in_bucket(place: str, known: Manifests) -> Iterator[Segment]:
    objects = patient(place)
    if lake_names.is_lake(objects):
        yield from _in_lake(objects)
        return
    for prefix in find_logs(objects):
        tier = LogTier(objects, prefix)
        log = f"{place}/{prefix}"
        listed = tier.list(known.get(log)).segments
        known[log] = {one.first_index: one for one in listed}
        for one in listed:
            yield Segment(tier.name_of(one.first_index, SEGMENT), place, one.size, one)


def _in_lake(objects: Objects) -> Iterator[Segment]:
    if objects.read_range(lake_names.MARKER, 0, lake_names.MARKER_BYTES_MAX) != lake_names.MARK:
        raise NoLog(f"{objects.place} is a lake of another version; convert its logs to a new one")
    files = [*lake_names.files(objects, *lake_names.REPORTED)]
    if not files:
        raise NoLog(
            f"{objects.place} is a lake without any segment; `rgd log convert LOG... --out {objects.place}` converts some"
        )
    yield from (Segment(name, objects.place, size) for name, size in files)


def _on_disk(path: Path) -> Iterator[Segment]:
    if path.is_file():
        yield Segment.of(path.resolve())
        return
    if (path / lake_names.MARKER).is_file():
        yield from _in_lake(patient(str(path.resolve())))
        return
    by_folder = defaultdict[Path, list[Path]](list)
    seen = set[str]()
    for place, folders, names in os.walk(path, onerror=_refuse, followlinks=True):
        # A link may lead to a folder above it, or to one that is searched anyway.
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        for name in filter(_SEGMENT_NAME.fullmatch, names):
            file = Path(place, name).resolve()
            by_folder[file.parent].append(file)
    for folder, files in by_folder.items():
        is_tier = any(one.stem.isdecimal() for one in folder.glob("[0-9]*" + MANIFEST))
        yield from _in_tier(files) if is_tier else map(Segment.of, files)


def _refuse(error: OSError) -> None:
    """A folder that cannot be read may be a broker's, without whom every figure would be wrong."""
    if Path(error.filename).name != _FILE_SYSTEMS_OWN:
        raise error


def _in_tier(files: Iterable[Path]) -> Iterator[Segment]:
    """The segments of a tier's folder that are uploaded and not being deleted."""
    for file in files:
        with suppress(FileNotFoundError):
            data = file.with_suffix(MANIFEST).read_bytes()
            if data and not file.with_suffix(DELETED).exists():
                yield Segment.of(file, decode_manifest(data, str(file)))


def _read_file(path: str, offset: int, size: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def segments_within(segments: Sequence[Segment], within: TimeRange) -> list[Segment]:
    """The segments that may hold entries of a time range, of those that `find_segments` found.

    Raises:
        BadLake: a lake lacks a segment's minutes of a day.
    """
    kept = [
        segment
        for segment, following in zip_longest(segments, segments[1:])
        if _overlaps(segment, following, within)
    ]
    days = {one for one in segments if one.is_of_lake and lake_names.day_ms(one.path) is not None}
    outside = _keys(days) - _keys(days.intersection(kept))
    _check_days([one for one in kept if one.is_of_lake])
    # A segment of which nothing could be read has no day, and is in every range.
    return [one for one in kept if not _keys([one]) & outside]


def _check_days(files: Sequence[Segment]) -> None:
    """Refuse days without their minutes, which are figures."""
    stems = defaultdict[str, set[tuple[str, str]]](set)
    for one in files:
        table, _, name = one.path.partition("/")
        stems[table].add((one.place, name.rpartition("-")[0]))
    for place, lost in sorted(stems["rounds"] - stems["minutes"])[:1]:
        day, _, key = lost.partition("/")
        remedy = f"delete segments/key={key[:32]} and convert its log again, or delete rounds/{day} too and do without that day"
        raise BadLake(
            f"{place}/minutes/{lost}-*.parquet is gone; unless a conversion runs, {remedy}"
        )


def _keys(files: Iterable[Segment]) -> set[tuple[str, int] | None]:
    """The segments that files of a lake are of."""
    return {lake_names.key_and_size(one.path) for one in files if one.is_of_lake}


def _overlaps(segment: Segment, following: Segment | None, within: TimeRange) -> bool:
    """Whether a segment may hold entries of a time range: by its day or manifest, otherwise by two first entries."""
    if segment.is_of_lake:
        day_ms = lake_names.day_ms(segment.path)
        # The last round of a day may be in the next day's file.
        return day_ms is None or (
            day_ms + DAY_MS > (within.from_ms or 0) and not within.is_over(day_ms - DAY_MS)
        )
    stated = segment.manifest
    if stated is not None:
        return not within.is_over(stated.first_ms) and (within.from_ms or 0) <= stated.last_ms
    first = _first_ms(segment)
    if first is not None and within.is_over(first):
        return False
    if within.from_ms is None or following is None or following.log != segment.log:
        return True
    # The next file in the order of paths may be of another log, whose times prove nothing.
    next_first = _first_ms(following)
    return next_first is None or next_first >= within.from_ms


def _first_ms(segment: Segment) -> int | None:
    """The timestamp of a segment's first entry; None where that is unknown."""
    with suppress(WireError):
        return header_at(segment.ranges(), 0).timestamp
    return None
