"""`rgd log convert`: usage logs to Parquet (`rgd.analysis.convert`)."""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

from typing import Annotated

import typer

from rgd.cli.report import TIME, Master, progress_line, time_range
from rgd.text import count, printable


def convert(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Log folders, segment files or tier URLs.")
    ],
    *,
    out: Annotated[
        str, typer.Option(metavar="LAKE", help="A folder or an s3:// URL; what is new is added.")
    ],
    master: Master = None,
    from_time: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help=f"Only segments that end after this: {TIME}."),
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help=f"Only segments that begin before this: {TIME}."),
    ] = None,
) -> None:
    """Convert logs to Parquet, by day: usage, refusals by level, rounds, policies, segments."""
    from rgd.analysis.convert import convert_logs

    within = time_range(from_time, to_time)
    with progress_line() as tell:
        done = convert_logs(logs, out, master=master, within=within, progress=tell)
    made = f"{count(done.segments, 'segment')} with {count(done.rows, 'row')} converted"
    print(printable(f"{out}: {made}, {done.unchanged} had been or have no entry yet"))
