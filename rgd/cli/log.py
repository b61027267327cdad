"""`rgd log`: the usage log, for people and scripts.

Law: `cat` prints every readable entry, also after damage. Unreadable bytes are reported on
standard error with file and offset, and the exit code is 1. The keys of `--json` are a contract
(design 13): scripts rely on them.

`rgd.adapters.usagelog` reads files and `rgd.wire` decodes bytes; this module only shows them.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgd.errors import RgdError

if TYPE_CHECKING:
    from rgd.wire.frame import Entry
    from rgd.wire.record import Json

app = typer.Typer(help="Read usage logs.", no_args_is_help=True)


@app.callback()
def log() -> None:
    """Keep `cat` a subcommand although it is the only one."""


@app.command("cat")
def cat(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Log folders or segment files.")
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Print the entries of logs, oldest first."""
    faults = 0
    for path in paths:
        for line, fault in _lines(path, as_json=as_json):
            if line:
                print(line)
            if fault:
                print(f"rgd: {fault}", file=sys.stderr)
                faults += 1
    if faults:
        raise typer.Exit(1)


def _lines(path: Path, *, as_json: bool) -> Iterator[tuple[str, str]]:
    """The lines of one path for standard output, each with its faults."""
    from rgd.adapters.usagelog.reader import DamagedEntry, read_entries

    shown = _shown_as_json if as_json else _shown_as_text
    try:
        for found in read_entries(path):
            if isinstance(found, DamagedEntry):
                yield "", str(found)
            else:
                report, fault = _report_of(found.entry)
                at = f"{found.path}: entry at offset {found.offset}: {fault}" if fault else ""
                yield shown(found.entry, report), at
    except RgdError as error:
        yield "", str(error)


def _report_of(entry: "Entry") -> tuple[dict[str, "Json"] | None, str]:
    """The report in an entry, or the reason why an entry that claims to be a report cannot be read."""
    from rgd.wire.errors import WireError
    from rgd.wire.record import record_of, record_to_dict

    try:
        record = record_of(entry)
    except WireError as error:
        return None, str(error)
    return (None if record is None else record_to_dict(record)), ""


def _shown_as_json(entry: "Entry", report: dict[str, "Json"] | None) -> str:
    view: dict[str, Json] = {
        "index": entry.index,
        "broker_timestamp": entry.broker_timestamp,
        "publish_time": entry.publish_time,
        "producer_name": entry.producer_name,
        "sequence_id": entry.sequence_id,
        "report": report,
    }
    if report is None:
        view["payload_hex"] = entry.payload.hex()
    return json.dumps(view)


def _shown_as_text(entry: "Entry", report: dict[str, Any] | None) -> str:
    index = "-" if entry.index is None else entry.index
    head = f"{index} {_time(entry.timestamp)} {entry.producer_name}#{entry.sequence_id}"
    if report is None:
        return f"{head} {len(entry.payload)} bytes that are no report"
    peers = " ".join(f"{name}#{sequence}" for name, sequence in report["peers"].items())
    lines = [
        f"{head} round {report['sequence']} of {report['broker']}, {report['period_ms']:g} ms"
        + (f", part {report['part']} of {report['parts']}" if report["parts"] > 1 else "")
        + (", isolated" if report["isolated"] else "")
        + (f", {report['lost']:,} lost so far" if report["lost"] else "")
        + (f", peers {peers}" if peers else "")
    ]
    for row in report["rows"]:
        lines.extend(_row_lines(row))
    return "\n".join(lines)


def _row_lines(row: dict[str, Any]) -> Iterator[str]:
    """A line for each dimension of a row with any counts or a limit."""
    for dimension in ("messages", "bytes"):
        admitted, wanted, refused = (
            row[name][dimension] for name in ("admitted", "wanted", "refused")
        )
        share, quota = row["share"][dimension], row["quota"][dimension]
        if admitted or wanted or refused or quota is not None:
            yield (
                f"    {row['group']} {row['kind']} {dimension}: admitted {_rate(admitted)}, "
                f"wanted {_rate(wanted)}, refused {refused:,}; share {_rate(share)} of "
                f"{_rate(quota)} ({row['policy']}{'' if row['sent'] else ', not sent'})"
            )


def _rate(units_per_s: float | None) -> str:
    return "unlimited" if units_per_s is None else f"{units_per_s:,.1f}/s"


def _time(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"  # Damaged or foreign clocks go beyond the calendar.
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
