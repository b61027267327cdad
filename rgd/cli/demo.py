"""`rgd demo`: a cluster on this machine, shown live with a verdict; then Spark reports on its log.

It prints a live table on a terminal, and plain lines in a pipe. The last line is one JSON object;
the exit code is 1 if a phase failed. `rgd.app.demo` has the phases.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from rgd.app.demo.run import Show, Snapshot
    from rgd.app.demo.verdict import PhaseVerdict

#: Is in the folder of a demo, which a new one may delete with all that is in it.
_MARK = ".rgd-demo"


def demo(
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where logs and report go.")
    ] = Path("demo-out"),
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Leave out the report by Spark.")
    ] = False,
) -> None:
    """Run three daemons under load and faults, and report on it."""
    import asyncio

    from rgd.app.demo.run import play

    if not no_report:
        from rgd.analysis.session import require_java, require_spark

        require_java()
        require_spark()
    _make_room(out)
    with _screen() as show:
        verdicts = asyncio.run(play(out, show))
    report = None if no_report else _report(out)
    ok = all(verdict.ok for verdict in verdicts)
    phases = [*map(asdict, verdicts)]
    verdict = {"verdict": "ok" if ok else "failed", "phases": phases, "report": report}
    print(json.dumps(verdict), flush=True)
    if not ok:
        raise typer.Exit(1)


def _make_room(out: Path) -> None:
    """Begin a demo's folder, in place of that of a former one and of nothing else."""
    from rgd.errors import ConfigError, Fault

    if (out / _MARK).exists():
        shutil.rmtree(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        expected = f"expected a new or empty folder, or one of a former demo (with {_MARK})"
        raise ConfigError(Fault("command line", "--out", expected))
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()


def _report(out: Path) -> str:
    from rgd.cli.report import write_report

    write_report([out / "log"], out / "report")
    return str(out / "report" / "report.html")


@contextmanager
def _screen() -> "Iterator[Show]":
    """Shows snapshots as a live table on a terminal, as lines elsewhere, and verdicts."""
    from rich.console import Console
    from rich.live import Live

    from rgd.app.demo.run import Snapshot

    console = Console()
    live = Live(console=console, auto_refresh=False) if sys.stdout.isatty() else None

    def show(seen: "Snapshot | PhaseVerdict") -> None:
        if not isinstance(seen, Snapshot):
            console.print(_judgement(seen), highlight=False, soft_wrap=True)
        elif live is not None:
            live.update(_table(seen), refresh=True)
        else:
            print(_line(seen), flush=True)

    with live or nullcontext():
        yield show


def _judgement(verdict: "PhaseVerdict") -> str:
    if verdict.rounds is None or verdict.worst_error is None:
        return f"FAILED  {verdict.name}: never fair"
    word = "ok    " if verdict.ok else "FAILED"
    return (
        f"{word}  {verdict.name}: fair after {verdict.rounds} rounds, "
        f"from then on within {verdict.worst_error:.1%}"
    )


def _line(snapshot: "Snapshot") -> str:
    cells = [
        f"{line.broker} wanted {line.wanted:.0f} admitted {line.admitted:.0f} "
        f"share {'-' if line.share is None else f'{line.share:.0f}'}"
        for line in snapshot.lines
    ]
    return f"{snapshot.phase} {snapshot.second} s | {' | '.join(cells)}"


def _table(snapshot: "Snapshot") -> "Table":
    from rich.table import Table

    table = Table(
        title=f"{snapshot.phase}, {snapshot.second} s, quota {snapshot.quota:.0f} messages/s"
    )
    table.add_column("group")
    table.add_column("broker")
    for name in ("wanted/s", "admitted/s", "share/s"):
        table.add_column(name, justify="right", min_width=10)
    for line in snapshot.lines:
        share = "-" if line.share is None else f"{line.share:.0f}"
        table.add_row(line.group, line.broker, f"{line.wanted:.0f}", f"{line.admitted:.0f}", share)
    wanted, admitted = (
        sum(getattr(line, of) for line in snapshot.lines) for of in ("wanted", "admitted")
    )
    table.add_row("", "all", f"{wanted:.0f}", f"{admitted:.0f}", style="bold")
    return table
