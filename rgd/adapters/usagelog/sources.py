"""Where the segments of a log are: files of a folder, or objects of a tier, read alike.

Law: reading a tier moves no more than what is read: headers come in blocks (`rgd.storage.ranges`), a whole
segment in chunks. A segment that is removed while its log is read is left out.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable, SegmentMoved
from rgd.adapters.usagelog.files import list_logs, list_segments
from rgd.adapters.usagelog.index import load_marks
from rgd.config.plain_files import open_plain_file
from rgd.storage.errors import ObjectMissing, TierDamaged
from rgd.storage.headers import Readable
from rgd.storage.manifest import TieredSegment
from rgd.storage.marks import INDEX_BYTES_MAX, Mark, decode_marks
from rgd.storage.objects import folder_of, is_url, patient
from rgd.storage.ranges import NO_BYTES, Ranges
from rgd.storage.tier import MANIFEST, MARKS, SEGMENT, LogTier, find_logs
from rgd.wire.errors import WireError
from rgd.wire.segment import parse_segment_name


class Source(Protocol):
    """A segment that can be opened."""

    @property
    def name(self) -> str:
        """Where it is, for people; unique."""

    @property
    def first_index(self) -> int | None:
        """As its name says; None: it has another name."""

    @property
    def first_ms(self) -> int | None:
        """The time of its first entry where that is known without reading it."""

    def open(self) -> AbstractContextManager[Readable]:
        """Its bytes while they are read; none where it is gone."""

    def marks(self) -> list[Mark]:
        """Its sparse index; empty where there is none."""

    def may_grow(self) -> bool:
        """Whether its daemon may be writing it just now."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A segment file."""

    path: Path
    #: Whether its uploader may move it to the tier before it is opened.
    may_move: bool = False
    #: Not known without reading the file.
    first_ms: None = None

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def first_index(self) -> int | None:
        with contextlib.suppress(WireError):
            return parse_segment_name(self.path.name)
        return None

    @contextlib.contextmanager
    def open(self) -> Iterator[Readable]:
        try:
            with contextlib.ExitStack() as stack:
                try:
                    opened: Readable = stack.enter_context(open_plain_file(self.path))
                except FileNotFoundError:
                    if self.may_move:
                        raise SegmentMoved(self.path) from None
                    opened = NO_BYTES
                yield opened
        except OSError as exc:
            raise LogUnreadable(self.path, exc) from exc

    def marks(self) -> list[Mark]:
        return load_marks(self.path)

    def may_grow(self) -> bool:
        # A segment that has a successor is not written any more.
        names = (segment.path.name for segment in list_segments(self.path.parent))
        return not any(name > self.path.name for name in names)


@dataclass(frozen=True, slots=True)
class TierSource:
    """A segment in a tier; one that is missing because the tier is gone is an error."""

    tier: LogTier
    segment: TieredSegment

    @property
    def name(self) -> str:
        place = self.tier.objects.place.rstrip("/")
        return f"{place}/{self.tier.name_of(self.segment.first_index, SEGMENT)}"

    @property
    def first_index(self) -> int | None:
        return self.segment.first_index

    @property
    def first_ms(self) -> int | None:
        return self.segment.first_ms

    @contextlib.contextmanager
    def open(self) -> Iterator[Readable]:
        name = self.tier.name_of(self.segment.first_index, SEGMENT)
        ranges = Ranges(partial(self.tier.objects.read_range, name), self.segment.size)
        try:
            ranges.read(1, 0)
        except ObjectMissing:
            self.tier.check()
            ranges = NO_BYTES
        yield ranges

    def marks(self) -> list[Mark]:
        name = self.tier.name_of(self.segment.first_index, MARKS)
        with contextlib.suppress(ObjectMissing):
            return decode_marks(self.tier.objects.read_range(name, 0, INDEX_BYTES_MAX))
        return []

    def may_grow(self) -> bool:
        return False


def folder_sources(folder: Path) -> list[Source]:
    """The segments of a log folder.

    Raises:
        LogNotFound, LogUnreadable: it cannot be listed.
    """
    return [FileSource(segment.path) for segment in list_segments(folder)]


def logs_at(
    place: Path | str, on_damaged: Callable[[TierDamaged], None] | None = None
) -> Iterator[list[Source]]:
    """The segments of each log at a place: a segment file, a log folder, a folder of those, or a tier.

    Those that a tier has marked for deletion are not among them.

    Args:
        place: where they are.
        on_damaged: receives what is wrong with a manifest, whose segment is then left out.

    Raises:
        LogNotFound: there is nothing.
        LogUnreadable, TierError: it cannot be listed.
    """
    tiers = tier_at(place)
    if tiers is not None:
        for tier in tiers:
            yield [
                TierSource(tier, segment) for segment in tier.list(on_damaged=on_damaged).segments
            ]
        return
    path = Path(place)
    if path.is_dir():
        yield from map(folder_sources, list_logs(path))
    elif path.exists():
        yield [FileSource(path)]
    else:
        raise LogNotFound(path)


def tier_at(place: Path | str) -> Sequence[LogTier] | None:
    """The logs of a tier; None: the place is a log folder, a folder of those or a file.

    Raises:
        LogNotFound: the tier holds no log.
        TierError: it cannot be listed.
    """
    text = str(place)
    if not is_url(text) and not _has_manifests(Path(place)):
        return None
    try:
        folder_of(text)
    except ValueError as exc:
        raise LogNotFound(text) from exc
    objects = patient(text)
    tiers = [LogTier(objects, prefix) for prefix in find_logs(objects)]
    if not tiers:
        raise LogNotFound(text)
    return tiers


def _has_manifests(folder: Path) -> bool:
    """Whether a folder is a tier: it has a manifest."""
    if not folder.is_dir():
        return False
    return any(path.stem.isdecimal() for path in folder.rglob("[0-9]*" + MANIFEST))
