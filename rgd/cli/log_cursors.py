"""`rgd log cursors, ack, forget`: how far readers of a running daemon's log have come.

Law: a position is the index of the first entry that is not dealt with, as `rgd log cat` shows it.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from rgd.cli.asking import AsJson, Door, asks
from rgd.cli.table import print_columns

ReaderName = Annotated[str, typer.Argument(metavar="NAME", help="The reader's name.")]


@asks
def cursors(*, door: Door, as_json: AsJson = False) -> None:
    """List the readers of the log: their positions, and what they hold back."""
    door.show(lambda client: client.log_cursors(), _print_cursors, as_json=as_json)


def _print_cursors(found: Sequence[Mapping[str, Any]]) -> None:
    columns = ("reader", "index", "behind", "idle", "holds", "deleted unread")
    rows = [
        (
            one["name"],
            str(one["index"]),
            str(one["behind"]),
            f"{one['idle_s']:.0f}s",
            "yes" if one["holds"] else "no",
            str(one["passed"]),
        )
        for one in found
    ]
    print_columns(columns, rows)


@asks
def ack(
    name: ReaderName,
    index: Annotated[
        int, typer.Argument(metavar="INDEX", min=0, help="The first entry not dealt with.")
    ],
    *,
    door: Door,
) -> None:
    """Acknowledge entries for a reader: retention need not wait for them."""
    door.ask(lambda client: client.acknowledge(name, index))


@asks
def forget(name: ReaderName, *, door: Door) -> None:
    """Forget a reader: it holds back nothing any more."""
    door.ask(lambda client: client.forget_cursor(name))
