"""`rgd top`: the live view on a terminal, drawn again each round; the first line is the verdict.

Law: it shows what `GET /v1/live` says, in the words of the live page. It lives on while the daemon is gone, says since when, and
goes on by itself. In a pipe it is one snapshot, as with `--once`; with `--json` a line for each round.
"""

# ruff: noqa: PLC0415 -- what only some need is imported by what uses it, so that --help stays fast

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rgd.cli.asking import AsJson, Door, asks
from rgd.cli.table import print_columns
from rgd.core.units import Dimension
from rgd.text import cut, printable, show

if TYPE_CHECKING:
    from rgd.adapters.http.client import DaemonClient

_Json = Mapping[str, Any]

#: Pause between two attempts to reach a daemon that is gone.
RETRY_S: Final = 1.0

#: Width of a bar in characters; the quota is at its middle.
BAR_CHARS: Final = 20

#: Rows and events of `--once`; on a terminal as many as there is room for.
ROWS_SHOWN: Final = 50

_COLUMNS: Final = (
    *("group", "kind", "dimension", "demand"),
    *("wanted", "admitted", "quota", "pressure", "lowest ratio", "refused here"),
)
_TEXT_COLUMNS: Final = 4
#: What a narrow terminal goes without, the first one first.
_SPARED: Final = ("demand", "refused here", "admitted", "lowest ratio", "kind", "pressure")
#: A longer name of a group takes more lines, and no column's place.
_GROUP_CHARS: Final = 24


@asks
def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="One snapshot, then end.")] = False,
    as_json: AsJson = False,
    door: Door,
) -> None:
    """Show brokers and the groups under the most pressure, round by round."""
    shown: Callable[[_Json], None] = _print_json if as_json else _print
    if once or not (as_json or sys.stdout.isatty()):
        shown(door.ask(lambda client: client.live()))
        return
    if as_json:
        door.ask(lambda client: _watch(client, _print_json))
        return
    from rich.console import Console

    console = Console()
    with console.screen():

        def redraw(view: _Json) -> None:
            console.clear()
            _print(view)

        door.ask(lambda client: _watch(client, redraw))


async def _watch(client: "DaemonClient", shown: Callable[[_Json], None]) -> None:
    """Show each snapshot until interrupted; the first attempt has to reach the daemon."""
    import asyncio
    from contextlib import aclosing

    from rgd.adapters.http.client import DaemonRefused, DaemonUnreachable

    last: _Json | None = None
    while True:
        try:
            async with aclosing(client.watch()) as views:
                async for view in views:
                    shown(view)
                    last = view
        except (DaemonUnreachable, DaemonRefused) as error:
            # 503: its plane is being replaced.
            if last is None or (isinstance(error, DaemonRefused) and error.status != 503):
                raise
        if last is not None:
            shown({**last, "verdict": {"level": "bad", "text": _stale(last)}})
        await asyncio.sleep(RETRY_S)


def _stale(view: _Json) -> str:
    from datetime import UTC, datetime

    since = datetime.fromtimestamp(view["unix_ms"] / 1000, UTC)
    return f"Stale since {since:%H:%M:%S} UTC: {view['broker']} does not answer; trying again."


def _print_json(view: _Json) -> None:
    print(json.dumps(view), flush=True)


def _print(view: _Json) -> None:
    head = [*map(printable, (view["verdict"]["text"], *_lines(view)))]
    rows = [*map(_row, view["groups"]["rows"][:ROWS_SHOWN])]
    kept = [*range(len(_COLUMNS))]
    if sys.stdout.isatty():
        width, height = shutil.get_terminal_size()
        head[1:] = [cut(line, 2 * width - 3) for line in head[1:]]
        rows = rows[: max(1, height - sum(-(-len(line) // width) for line in head) - 7)]
        kept = _fitting(rows, width)
    print("\n".join(head))
    if rows:
        print()
        cells = ([row[at] for at in kept] for row in rows)
        words = sum(at < _TEXT_COLUMNS for at in kept)
        print_columns([_COLUMNS[at] for at in kept], cells, text_columns=words)
    if view["groups"]["total"] > len(rows):
        print(f"{view['groups']['total'] - len(rows):,} more quotas have less pressure")
    sys.stdout.flush()


def _fitting(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns for which a terminal has room, each with a line and two spaces."""
    kept = [*range(len(_COLUMNS))]
    for spare in _SPARED:
        widths = [max(len(cells[at]) for cells in (_COLUMNS, *rows)) for at in kept]
        if sum([min(widths[0], _GROUP_CHARS), *widths[1:]]) + 3 * len(kept) + 1 <= width:
            break
        kept.remove(_COLUMNS.index(spare))
    return kept


def _lines(view: _Json) -> Iterator[str]:
    """What stands between the verdict and the groups."""
    brokers = view["brokers"]
    words = [
        f"{one['broker']} "
        + ("(this)" if one["self"] else f"{'silent ' if one['silent'] else ''}{one['age_s']:.1f} s")
        for one in brokers["members"]
    ]
    words += [f"{one['broker']} gone {one['ago_s']:.0f} s" for one in brokers["gone"]]
    yield f"brokers: {', '.join(words)}"
    backlogs = view["backlogs"]
    yield (
        f"backlogs: {backlogs['topics']:,} topics, {backlogs['blocked']:,} blocked, "
        f"{backlogs['evicting']:,} to be skipped; leases: {view['leases']:,}"
    )
    log = view["log"]
    if log is not None:
        tier = log["tier"]
        lag = f"; tier {tier['records']:,} entries behind" if tier is not None else ""
        readers = [f"{one['name']} {one['behind']:,} behind" for one in log["readers"]]
        yield "; ".join([f"usage log: {log['entries']:,} entries{lag}", *readers])


def _row(row: _Json) -> list[str]:
    is_bytes = row["dimension"] == Dimension.BYTES
    levels = row["refused"] or {}
    refused = [f"{level} {show(rate, is_bytes=is_bytes)}" for level, rate in levels.items()]
    return [
        row["group"] + (" (shadow)" if row["shadow"] else ""),
        row["kind"],
        row["dimension"],
        _bar(row),
        *(show(row[of], is_bytes=is_bytes) for of in ("wanted", "admitted", "quota")),
        f"{row['pressure']:.2f}",
        "-" if row["lowest"] is None else f"{row['lowest']:.2f}",
        "not known" if row["refused"] is None else ", ".join(refused) or "-",
    ]


def _bar(row: _Json) -> str:
    """Admitted solid, unmet light; the quota is at the middle, more than twice of it is cut."""
    quota = max(row["quota"], 1e-3)
    ends = [min(1.0, row[of] / quota / 2) * BAR_CHARS for of in ("admitted", "wanted")]
    admitted, wanted = round(ends[0]), round(max(ends))
    bar = "█" * admitted + "░" * (wanted - admitted)
    bar = bar.ljust(BAR_CHARS, "·")
    return f"{bar[: BAR_CHARS // 2]}|{bar[BAR_CHARS // 2 :]}"
