"""`rgd log`: the usage log, for people and scripts.

Law: `cat` prints every readable entry, also after damage. Unreadable bytes are reported on
standard error with file and offset, and the exit code is 1. The keys of `--json` are a contract
(docs/usage-log.md): scripts rely on them.

`rgd.adapters.usagelog` reads files and `rgd.wire` decodes bytes; this module only shows them.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rgd.cli import log_convert, log_cursors, log_places
from rgd.cli.log_places import shown_time
from rgd.errors import ConfigError, Fault, RgdError
from rgd.text import printable

if TYPE_CHECKING:
    from rgd.adapters.usagelog.reader import LogEntry
    from rgd.wire.frame import Entry
    from rgd.wire.log_records import LogReader
    from rgd.wire.record import Json

app = typer.Typer(help="Read usage logs, in folders and in tiers.", no_args_is_help=True)
app.command("ls")(log_places.ls)
app.command("seek")(log_places.seek)
app.command("verify")(log_places.verify)
app.command("upload")(log_places.upload)
app.command("convert")(log_convert.convert)
app.command("cursors")(log_cursors.cursors)
app.command("ack")(log_cursors.ack)
app.command("forget")(log_cursors.forget)

#: The daemon's setting, which `--raw` follows too.
EXPOSING_VARIABLE: Final = "RGD_LOG__EXPOSINGBROKERENTRYMETADATATOCLIENTENABLED"


@app.command("cat")
def cat(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Log folders, segment files or tier URLs."),
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Entries as a broker gives them to a consumer, each behind its length."
        ),
    ] = False,
    expose: Annotated[
        bool,
        typer.Option(
            "--expose",
            envvar=EXPOSING_VARIABLE,
            help="With --raw: also what the broker added in front.",
        ),
    ] = False,
) -> None:
    """Print what logs hold, oldest first."""
    if raw and as_json:
        raise ConfigError(Fault(log_places.SOURCE, "--raw", "expected --raw or --json, not both"))
    faults = 0
    for path in paths:
        count = 0
        for fault in _printed(path, _printer(as_json=as_json, raw=raw, expose=expose)):
            count += 1
            if fault:
                print(f"rgd: {printable(fault)}", file=sys.stderr)
                faults += 1
        if count == 0:
            print(printable(f"rgd: {path}: no entries"), file=sys.stderr)
    if faults:
        raise typer.Exit(1)


def _printed(path: str, show: "Callable[[LogEntry], str]") -> Iterator[str]:
    """Print the entries of one path; of each its fault, or ""."""
    from rgd.adapters.usagelog.reader import DamagedEntry, read_entries

    try:
        for found in read_entries(path if "://" in path else Path(path)):
            yield str(found) if isinstance(found, DamagedEntry) else show(found)
    except RgdError as error:
        yield str(error)


def _printer(*, as_json: bool, raw: bool, expose: bool) -> "Callable[[LogEntry], str]":
    """Prints an entry of one log; its fault, or ""."""
    from rgd.wire.frame import headers_and_payload
    from rgd.wire.log_records import LogReader
    from rgd.wire.segment import encode_stored

    reader = LogReader()
    shown = _shown_as_json if as_json else _shown_as_text

    def print_raw(found: "LogEntry") -> str:
        # `[u32 length][entry]`, repeated.
        data = found.data if expose else headers_and_payload(found.data)
        sys.stdout.buffer.write(encode_stored(data))
        return ""

    def print_line(found: "LogEntry") -> str:
        report, fault = _report_of(reader, found.entry)
        print(printable(shown(found.entry, report)))
        return f"{found.path}: entry at offset {found.offset}: {fault}" if fault else ""

    return print_raw if raw else print_line


def _report_of(reader: "LogReader", entry: "Entry") -> tuple[dict[str, "Json"] | None, str]:
    """The report that an entry holds, and why it cannot be read although it says that it is one."""
    from rgd.core.exchange.messages import RoundRecord
    from rgd.wire.errors import WireError
    from rgd.wire.log_policies import policies_to_dict
    from rgd.wire.record import record_to_dict

    try:
        found = reader.read(entry)
    except WireError as error:
        return None, str(error)
    if found is None:
        return None, ""
    if isinstance(found, RoundRecord):
        return record_to_dict(found), ""
    return policies_to_dict(found), ""


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
    head = f"{index} {shown_time(entry.timestamp)} {entry.producer_name}#{entry.sequence_id}"
    if report is None:
        return f"{head} {len(entry.payload)} bytes that are no report"
    part = f", part {report['part']} of {report['parts']}" if report["parts"] > 1 else ""
    if "policies" in report:
        what = "changes of policies" if report["changes"] else "policies"
        left_out = f", {report['left_out']:,} left out" if report["left_out"] else ""
        lines = [f"{head} {what} of {report['broker']}{part}{left_out}"]
        for key, value in report["policies"].items():
            lines.append(f"    {key} {'deleted' if value is None else json.dumps(value)}")
        return "\n".join(lines)
    peers = " ".join(f"{name}#{sequence}" for name, sequence in report["peers"].items())
    lines = [
        f"{head} round {report['sequence']} of {report['broker']}, {report['period_ms']:g} ms{part}"
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
