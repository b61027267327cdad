"""Where a report goes, a folder or a bucket: checked first, replaced last.

Law: only files of an earlier report are overwritten, and they stay complete until
the new report is complete. The new report is put together in a hidden folder inside, or for a bucket in a temporary folder
of this machine, and then each of its parts replaces the old one. `summary.json` comes last, so that a reader that waits for
it finds the rest.

Windows are written by tasks (`WindowFiles`), on any machine: to that hidden folder, or below a hidden name of the bucket, from
where they come to this machine to be drawn.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from rgd.analysis.parquet import ParquetBytes
from rgd.analysis.schema import WINDOWS as COLUMNS
from rgd.errors import ConfigError, Fault
from rgd.storage.errors import TierError
from rgd.storage.objects import Objects, folder_of, is_url, patient

WINDOWS: Final = "windows"
GROUPS: Final = "groups"
PAGE: Final = "report.html"
SUMMARY: Final = "summary.json"

#: In the order in which they are replaced.
PARTS: Final = (WINDOWS, GROUPS, PAGE, SUMMARY)

_STAGING: Final = ".rgd-report-"
#: Only names: of other columns most values differ, which a dictionary makes larger and takes twice the time to find out.
_parquet: Final = partial(
    ParquetBytes,
    COLUMNS,
    use_dictionary=[
        *("group", "kind", "dimension", "policy", "lowest_broker"),
        "brokers.list.element.broker",
    ],
)
#: Bytes of a file of windows that a task holds before it writes it.
PART_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Staging:
    """A report that is put together."""

    #: On this machine.
    folder: Path
    #: The place where tasks write windows, a folder or a bucket's URL.
    windows: str

    def fetch(self, groups: Sequence[str] | None = None) -> Path:
        """The folder of the windows that tasks wrote, on this machine; of some groups only, if they are named."""
        folder = self.folder / WINDOWS
        if is_url(self.windows):
            folder.mkdir()
            bucket = patient(self.windows)
            for name in bucket.names(""):
                (folder / name).write_bytes(bucket.read(name))
        if groups is not None:
            _keep_groups(folder, groups)
        return folder


class WindowFiles:
    """The windows of one task, in files that are there whole or not; another attempt replaces them."""

    def __init__(self, place: str, task: int) -> None:
        self._place = place
        self._task = task
        self._files = 0
        self._file = _parquet()

    def add(self, windows: Any) -> None:
        """Add a `pyarrow.Table` of `schema.WINDOWS`."""
        self._file.add(windows)
        if self._file.size >= PART_BYTES:
            self.close()
            self._file = _parquet()

    def close(self) -> None:
        """Write what is held."""
        name = f"part-{self._task:05}-{self._files:03}.parquet"
        self._files += 1
        data = self._file.close()
        if is_url(self._place):
            patient(self._place).replace(name, data)
            return
        written = Path(self._place, f".{uuid4().hex}")
        written.write_bytes(data)
        written.replace(written.with_name(name))


def page_of(out: Path | str) -> str:
    """Where a report's page is."""
    return str(out / PAGE) if isinstance(out, Path) else f"{out.rstrip('/')}/{PAGE}"


@contextmanager
def staged(out: Path | str) -> Iterator[Staging]:
    """A place to put the parts of a report together; `out` gets them if nothing is raised.

    Raises:
        ConfigError: `out` cannot be written, or has other content than a report.
        TierError: the bucket cannot be written.
    """
    check(out)
    folder = _folder_of(out)
    with _in_bucket(patient(str(out))) if folder is None else _in_folder(folder) as staging:
        yield staging


@contextmanager
def _in_folder(out: Path) -> Iterator[Staging]:
    is_new = not out.exists()
    staging = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        for left in out.glob(f"{_STAGING}*"):
            shutil.rmtree(left)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=out))
        (staging / WINDOWS).mkdir()
        yield Staging(staging, str(staging.absolute() / WINDOWS))
        for part in PARTS:
            _replace(staging, part, out)
    except OSError as exc:
        raise unfit(
            f"{out} cannot be written ({exc.strerror or exc}); name another folder"
        ) from exc
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        if is_new:
            # Removed only if it is empty, which means that there is no report.
            with suppress(OSError):
                out.rmdir()


@contextmanager
def _in_bucket(bucket: Objects) -> Iterator[Staging]:
    _clear(bucket)
    with tempfile.TemporaryDirectory(prefix=_STAGING) as made:
        try:
            yield Staging(Path(made), f"{bucket.place.rstrip('/')}/{_STAGING}{uuid4().hex}")
            for part in PARTS:
                _upload(Path(made), part, bucket)
        finally:
            with suppress(TierError):
                _clear(bucket)


def _clear(bucket: Objects) -> None:
    for name in bucket.names(""):
        if name.startswith(_STAGING):
            bucket.delete(name)


def _upload(folder: Path, part: str, bucket: Objects) -> None:
    """Put a part in the place of the former one."""
    files = [folder / part, *sorted((folder / part).glob("*"))]
    made = {str(file.relative_to(folder)): file for file in files if file.is_file()}
    for name, file in made.items():
        bucket.replace(name, file.read_bytes())
    for name in bucket.names(part).keys() - made.keys():
        bucket.delete(name)


def read_windows(windows: Path, groups: Collection[str], columns: Sequence[str]) -> Iterator[Any]:
    """Some columns of the windows of some groups: `pyarrow.Table`s, each with all of a group, kind and dimension or none."""
    for file in sorted(windows.glob("*.parquet")):
        yield from _rows_of(file, groups, columns)


def _keep_groups(windows: Path, groups: Collection[str]) -> None:
    """Remove the windows of all other groups, a row group at a time."""
    for file in windows.glob("*.parquet"):
        kept = _parquet()
        for rows in _rows_of(file, groups):
            kept.add(rows)
        file.write_bytes(kept.close())


def _rows_of(
    file: Path, groups: Collection[str], columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """The rows of some groups in a file: a `pyarrow.Table` of each row group that has any.

    One after another: Arrow's datasets read several at once, which is no faster here and takes 200 MiB.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pa.array(groups, pa.string())
    with pq.ParquetFile(file, pre_buffer=False) as stored:
        for number in range(stored.num_row_groups):
            group = stored.read_row_group(number, ["group"], use_threads=False)["group"]
            is_its = pc.is_in(group, wanted)
            if pc.any(is_its).as_py():
                yield stored.read_row_group(number, columns, use_threads=False).filter(is_its)


def check(out: Path | str) -> None:
    """Refuse a place with anything but an earlier report.

    Raises:
        ConfigError: names the other content.
        TierError: a bucket cannot be read.
    """
    folder = _folder_of(out)
    found = _names_in_bucket(patient(str(out))) if folder is None else _names_in(folder)
    found = {name for name in found if not name.startswith(_STAGING)}
    strange = sorted(found - set(PARTS))
    if strange:
        raise unfit(f"{out} holds {strange[0]!r}, which is no report; name an empty or new folder")
    if found and not _is_report(out, folder):
        raise unfit(f"{out} is not empty and holds no former report; name an empty or new folder")


def _folder_of(out: Path | str) -> Path | None:
    """The folder that a place is; None: it is in a bucket."""
    try:
        return out if isinstance(out, Path) else folder_of(out)
    except ValueError as exc:
        raise unfit(str(exc)) from exc


def _names_in(folder: Path) -> set[str]:
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise unfit(f"{folder} is a file; name a folder")
    try:
        return {entry.name for entry in folder.iterdir()}
    except OSError as exc:
        raise unfit(
            f"{folder} cannot be read ({exc.strerror or exc}); name another folder"
        ) from exc


def _names_in_bucket(bucket: Objects) -> set[str]:
    return {name.partition("/")[0] for name in bucket.names("")}


def _is_report(out: Path | str, folder: Path | None) -> bool:
    try:
        read = (
            patient(str(out)).read(SUMMARY) if folder is None else (folder / SUMMARY).read_bytes()
        )
        return "groups" in json.loads(read)
    except (OSError, ValueError, TypeError, RecursionError, TierError):
        return False


def _replace(staging: Path, part: str, out: Path) -> None:
    target = out / part
    if target.is_dir():
        target.rename(staging / f"former-{part}")
    if (staging / part).exists():
        (staging / part).replace(target)


def unfit(why: str) -> ConfigError:
    """The error of a place that cannot be used."""
    return ConfigError(Fault("command line", "--out", why))
