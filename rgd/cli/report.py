"""`rgd report`: run the Spark job over usage logs, and show its findings.

`rgd.analysis` defines and computes the figures. This module has the options, the
progress on a terminal (none in a pipe), and the table.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.cli.table import print_table
from rgd.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rgd.analysis.report import Summary


def report(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Log folders, segment files or tier URLs."),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")],
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master; default: this machine.")
    ] = None,
    window_s: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Seconds in a window; default: one round, more in long logs."
        ),
    ] = None,
) -> None:
    """Say who got what and whether it was fair: HTML, Parquet, summary.json and a table."""
    write_report(logs, out, master=master, window_s=window_s)


def write_report(
    logs: Sequence[str | Path],
    out: Path,
    *,
    master: str | None = None,
    window_s: float | None = None,
) -> None:
    """Make the report and print its findings; `rgd demo` ends with this too.

    Raises:
        ConfigError, AnalysisError, Unavailable: as `run_report`.
    """
    from rgd.analysis.report import run_report

    with _progress() as tell, _as_files([*map(str, logs)], tell) as paths:
        summary = run_report(paths, out, master=master, window_s=window_s, progress=tell)
    _print(summary)


@contextmanager
def _as_files(places: list[str], tell: Callable[[str], None]) -> Iterator[list[str]]:
    """The places with folders of copies instead of tiers in buckets, while the report is made."""
    from rgd.storage.copying import copy_logs, is_bucket
    from rgd.storage.objects import Objects

    with ExitStack() as stack:
        paths = []
        for place in places:
            path = place
            if is_bucket(place):
                path = stack.enter_context(tempfile.TemporaryDirectory(prefix="rgd-report-"))
                tell(f"copying {place}")
                try:
                    copy_logs(Objects(place), Path(path))
                except ValueError as error:
                    raise ConfigError(Fault("command line", "LOG", str(error))) from error
            paths.append(path.removeprefix("file://"))
        yield paths


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("looking at the logs") as status:
        yield status.update


def _print(summary: "Summary") -> None:
    print_table(summary.columns, summary.rows, text_columns=3)
    for sentence in summary.sentences:
        print(sentence)
    print(f"report: {summary.page}", flush=True)
