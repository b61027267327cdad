"""`rgd log ls, seek, verify, upload`: logs as they lie, in folders and tiers alike.

Law: nothing but `upload` changes anything. It only creates, and cuts the torn end of a log that no daemon writes, as the
daemon's next start would. What is found wrong is a line on standard error and the exit code 1. Long work shows
progress on a terminal and stays quiet in a pipe.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rgd.cli.progress import byte_progress
from rgd.errors import ConfigError, Fault, RgdError, Unavailable
from rgd.text import printable

if TYPE_CHECKING:
    from rgd.adapters.usagelog.inspecting import SegmentFacts

SOURCE: Final = "command line"
#: Of a time in milliseconds since 1970, which is a 64 bit number.
TIME_DIGITS_MAX: Final = 20

Places = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Log folders, folders of those, or tier URLs."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def ls(places: Places, *, as_json: AsJson = False) -> None:
    """List the segments of logs: indexes, times, sizes, and where they are."""
    from rgd.adapters.usagelog.inspecting import segments_at
    from rgd.cli.table import print_columns

    found: list[SegmentFacts] = []
    faults = 0
    for place in places:
        # What was found before a fault is shown, and the other places too.
        with _telling() as told:
            for facts in segments_at(place):
                found.append(facts)  # noqa: PERF402 -- the first half of a listing counts
        faults += len(told)
    if as_json:
        for facts in found:
            print(json.dumps(asdict(facts)))
    elif found:
        columns = ("log", "state", "first", "last", "from", "to", "bytes")
        rows = [
            (
                one.log,
                one.state,
                str(one.first_index),
                str(one.last_index),
                shown_time(one.first_ms),
                shown_time(one.last_ms),
                f"{one.size:,}",
            )
            for one in found
        ]
        print_columns(columns, rows, text_columns=2)
    if faults:
        raise typer.Exit(1)


def seek(
    place: Annotated[str, typer.Argument(metavar="PATH", help="One log: a folder or a tier URL.")],
    *,
    time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="ISO 8601 (UTC if it names no zone), or ms since 1970."),
    ] = None,
    index: Annotated[int | None, typer.Option(metavar="INDEX", min=0, help="An index.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say where the first entry at or after a time, or with an index, is."""
    from rgd.adapters.usagelog.reader import seek_index, seek_time

    if (time is None) == (index is None):
        raise ConfigError(Fault(SOURCE, "", "expected --time or --index, and not both"))
    found = seek_time(place, read_time(time or "")) if index is None else seek_index(place, index)
    if found is None:
        sought = f"the index {index}" if time is None else time
        raise RgdError(f"{place}: no entry at or after {sought}: the log ends before")
    if as_json:
        told = asdict(found)
        del told["counted"]
        print(json.dumps(told))
    else:
        shown = "-" if found.index is None else found.index
        print(printable(f"{found.path} {found.offset} {shown} {shown_time(found.timestamp)}"))


def verify(places: Places) -> None:
    """Read logs whole: checksums, structure, continuous indexes, times that never run backwards."""
    from rgd.adapters.usagelog.verifying import Note, Verification

    faults = 0
    for place in places:
        with _telling() as told:
            check = Verification(place)
            with byte_progress(f"verifying {place}", check.size) as done:
                for found in check.findings(done):
                    what = "not checked: " if isinstance(found, Note) else ""
                    print(printable(f"rgd: {what}{found}"), file=sys.stderr)
            faults += check.faults
            counts = f"{check.segments:,} segments, {check.entries:,} entries, {check.size:,} bytes"
            print(printable(f"{place}: {counts}; faults: {check.faults:,}"))
        faults += len(told)
    if faults:
        raise typer.Exit(1)


def upload(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="One log folder.")],
    tier_url: Annotated[
        str, typer.Argument(metavar="TIER", help="A folder, or s3://BUCKET[/PREFIX].")
    ],
    *,
    name: Annotated[str, typer.Option(help="The log's name in the tier (`log.name`).")] = "usage",
    bytes_per_s: Annotated[
        int, typer.Option(min=0, help="Most bytes a second on average; 0: no limit.")
    ] = 0,
) -> None:
    """Upload the closed segments of a log that are not in the tier yet; they stay on disk."""
    from rgd.adapters.usagelog.files import is_written
    from rgd.adapters.usagelog.tiering import TierSettings, closed_on_disk
    from rgd.app.log_wiring import lone_uploader
    from rgd.config.values import LOG_NAME_EXPECTED, is_log_name

    _require_one_log(folder)
    if not is_log_name(name):
        raise ConfigError(Fault(SOURCE, "--name", f"expected {LOG_NAME_EXPECTED}, got {name!r}"))
    settings = TierSettings(name=name, bytes_per_s=bytes_per_s or None)
    try:
        uploader = lone_uploader(folder.absolute(), tier_url, settings)
    except ValueError as error:
        raise ConfigError(Fault(SOURCE, "TIER", str(error))) from error
    aside = uploader.set_aside
    if aside is not None:
        where = "" if aside.kept is None else f"; it is now {aside.kept.name}"
        print(printable(f"rgd: {aside.path}: {aside.why}{where}"), file=sys.stderr)
    closed = closed_on_disk(folder, with_last=not is_written(folder))
    total = sum(segment.size for segment in closed)
    before = uploader.counts.uploaded_segments
    with byte_progress(f"uploading {folder}", total) as done:
        uploader.catch_up(lambda segment: done(segment.size))
    count = uploader.counts.uploaded_segments - before
    where = f"{tier_url}/{uploader.tier.prefix}"
    print(printable(f"{count} segments, {uploader.counts.uploaded_bytes:,} bytes to {where}"))


def _require_one_log(folder: Path) -> None:
    """Refuse a folder that is no log's, before anything is stored there.

    Raises:
        LogNotFound, LogUnreadable, SeveralLogs: it is none.
    """
    from rgd.adapters.usagelog.errors import LogNotFound, SeveralLogs
    from rgd.adapters.usagelog.files import list_logs

    logs = list_logs(folder)
    if not logs:
        raise LogNotFound(folder)
    if logs[0] != folder:
        raise SeveralLogs(folder, [str(log) for log in logs])


@contextmanager
def _telling() -> Iterator[list[RgdError]]:
    """Print what is wrong with one place; the next one has nothing to do with it."""
    told: list[RgdError] = []
    try:
        yield told
    except Unavailable:
        raise
    except RgdError as error:
        print(printable(f"rgd: {error}"), file=sys.stderr)
        told.append(error)


def read_time(text: str, option: str = "--time") -> int:
    """Milliseconds since 1970 of a time that a person wrote.

    Raises:
        ConfigError: it is none.
    """
    # Eight digits are a date: as ms they would be a few hours of 1970.
    if text.isascii() and text.isdecimal() and len(text) <= TIME_DIGITS_MAX and len(text) != 8:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        expected = (
            f"expected ISO 8601, such as 2026-11-22T09:00:00, or ms since 1970, got {text[:60]!r}"
        )
        raise ConfigError(Fault(SOURCE, option, expected)) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def shown_time(timestamp_ms: int) -> str:
    """A time for people."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"  # Damaged or foreign clocks go beyond the calendar.
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
