"""The output folder of a report: checked first, replaced last.

Law: only files of an earlier report are overwritten, and they stay complete until
the new report is complete. The new report is written to a hidden folder inside, and each of its parts replaces the
old one by renaming. `summary.json` comes last, so that a reader that waits for it finds the rest.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rgd.errors import ConfigError, Fault

WINDOWS: Final = "windows"
GROUPS: Final = "groups"
PAGE: Final = "report.html"
SUMMARY: Final = "summary.json"

#: In the order in which they are replaced.
PARTS: Final = (WINDOWS, GROUPS, PAGE, SUMMARY)

_STAGING: Final = ".rgd-report-"


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A folder to write the parts of a report to; `out` gets them if nothing is raised.

    Raises:
        ConfigError: `out` cannot be written, or has other content than a report.
    """
    check(out)
    is_new = not out.exists()
    staging = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        for left in out.glob(f"{_STAGING}*"):
            shutil.rmtree(left)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=out))
        yield staging
        for part in PARTS:
            _replace(staging, part, out)
    except OSError as exc:
        raise _unfit(
            out, f"cannot be written ({exc.strerror or exc}); name another folder"
        ) from exc
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        if is_new:
            # Removed only if it is empty, which means that there is no report.
            with suppress(OSError):
                out.rmdir()


def keep_groups(windows: Path, groups: Sequence[str]) -> None:
    """Remove the windows of all other groups, a batch at a time."""
    import pyarrow.dataset as ds

    whole = windows.with_name("whole")
    windows.rename(whole)
    kept = ds.dataset(whole).scanner(filter=ds.field("group").isin(groups))
    ds.write_dataset(kept, windows, format="parquet")
    shutil.rmtree(whole)


def check(out: Path) -> None:
    """Refuse a folder with anything but an earlier report.

    Raises:
        ConfigError: names the other content.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise _unfit(out, "is a file; name a folder")
    try:
        found = {entry.name for entry in out.iterdir() if not entry.name.startswith(_STAGING)}
    except OSError as exc:
        raise _unfit(out, f"cannot be read ({exc.strerror or exc}); name another folder") from exc
    strange = sorted(found - set(PARTS))
    if strange:
        raise _unfit(out, f"holds {strange[0]!r}, which is no report; name an empty or new folder")
    if found and not _is_report(out / SUMMARY):
        raise _unfit(out, "is not empty and holds no former report; name an empty or new folder")


def _is_report(summary: Path) -> bool:
    try:
        return "groups" in json.loads(summary.read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def _replace(staging: Path, part: str, out: Path) -> None:
    target = out / part
    if target.is_dir():
        target.rename(staging / f"former-{part}")
    if (staging / part).exists():
        (staging / part).replace(target)


def _unfit(out: Path, why: str) -> ConfigError:
    return ConfigError(Fault("command line", "--out", f"{out} {why}"))
