"""`rgd report`: run the Spark job over usage logs, and show its findings.

`rgd.analysis` defines and computes the figures. This module has the options, the
progress on a terminal (none in a pipe), and the table.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast
# ruff: noqa: PLR0913 -- a command's parameters are its options

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.cli.table import print_table
from rgd.errors import ConfigError, Fault
from rgd.text import printable

if TYPE_CHECKING:
    from rgd.analysis.asked import Asked, TimeRange
    from rgd.analysis.report import Summary

TIME = "ISO 8601 (UTC if it names no zone), or ms since 1970"

Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where it goes: a folder, or s3://BUCKET[/PREFIX].")
]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's master; default: this machine.")
]


def report(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Log folders, segment files, tiers; or a lake."),
    ],
    *,
    out: Out,
    master: Master = None,
    window_s: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Seconds in a window; default: one round, more in long logs."
        ),
    ] = None,
    from_time: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help=f"Only from this time on: {TIME}.")
    ] = None,
    to_time: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help=f"Only before this time: {TIME}.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this group; may be repeated.")
    ] = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this tenant's groups; may be repeated."),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=0, help="List and draw the N worst groups; 0: all.")
    ] = 0,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO", help=f"Show the same groups in another time range: {TIME}."
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCENARIO",
            help="What that would have changed: policy=NAME, quota=GROUP:RATE, brokers=N or "
            "round=2s, or several with commas between; may be repeated.",
        ),
    ] = None,
) -> None:
    """Say who got what and whether it was fair. Writes HTML, Parquet, summary.json, and prints a table."""
    from rgd.analysis.asked import Asked
    from rgd.analysis.scenarios import parse

    asked = Asked(
        time_range(from_time, to_time),
        frozenset(group or ()),
        frozenset(tenant or ()),
        parse(what_if or []),
        None if compare is None else _other_range(compare),
        top,
    )
    write_report(logs, out, master=master, window_s=window_s, asked=asked)


def _other_range(text: str) -> "TimeRange":
    from_time, _, to_time = text.partition("..")
    if not from_time or not to_time:
        expected = f"expected FROM..TO with two times ({TIME}), got {text}"
        raise ConfigError(Fault("command line", "--compare", expected))
    return time_range(from_time, to_time, ("--compare", "--compare"))


def time_range(
    from_time: str | None, to_time: str | None, options: tuple[str, str] = ("--from", "--to")
) -> "TimeRange":
    """The time range of two options.

    Raises:
        ConfigError: one is no time, or the range is empty.
    """
    from rgd.analysis.asked import TimeRange
    from rgd.cli.log_places import read_time

    from_ms, to_ms = (
        None if text is None else read_time(text, option)
        for text, option in zip((from_time, to_time), options, strict=True)
    )
    if from_ms is not None and to_ms is not None and to_ms <= from_ms:
        expected = f"expected a time after {from_time}, got {to_time}"
        raise ConfigError(Fault("command line", options[1], expected))
    return TimeRange(from_ms, to_ms)


def write_report(
    logs: Sequence[str | Path],
    out: Path | str,
    *,
    master: str | None = None,
    window_s: float | None = None,
    asked: "Asked | None" = None,
) -> None:
    """Make the report and print its findings; `rgd demo` ends with this too.

    Raises:
        ConfigError, AnalysisError, Unavailable: as `run_report`.
    """
    from rgd.analysis.asked import EVERYTHING
    from rgd.analysis.report import run_report

    asked = asked or EVERYTHING
    with progress_line() as tell:
        summary = run_report(
            [*map(str, logs)], out, master=master, window_s=window_s, asked=asked, progress=tell
        )
    _print(summary)


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Shows what is being done, on a terminal only."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("looking at the logs") as status:
        yield status.update


def _print(summary: "Summary") -> None:
    for columns, rows in summary.tables:
        print_table(columns, rows, text_columns=3)
    for sentence in summary.sentences:
        print(printable(sentence))
    print(printable(f"report: {summary.page} ({summary.fetched})"), flush=True)
