"""`rgd why`: `/v1/explain` in words; the first line is the verdict.

Law: the text has only the daemon's answer (`--json` prints that); `rgd.views.why_words` chooses the words, also for the
live page.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rgd.cli.asking import AsJson, Door, asks
from rgd.cli.names import query_of
from rgd.cli.table import print_columns
from rgd.core.units import Kind
from rgd.text import printable


@asks
def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TENANT/NAMESPACE[/TOPIC]", help="Whose traffic; or persistent://..."
        ),
    ],
    *,
    subscription: Annotated[
        str | None, typer.Option(metavar="NAME", help="A subscription of the topic.")
    ] = None,
    kind: Annotated[Kind, typer.Option(help="Which way the traffic goes.")] = Kind.PUBLISH,
    door: Door,
    as_json: AsJson = False,
) -> None:
    """Say why a namespace or topic is limited. By which limit, and how much was refused."""
    query = query_of(name, subscription) | {"kind": kind.value}
    door.show(lambda client: client.explain(query), _print, as_json=as_json)


def _print(view: Mapping[str, Any]) -> None:
    from rgd.views.why_words import TEXT_COLUMNS, words_of

    words = words_of(view)
    for line in (words.verdict, *words.details):
        print(printable(line))
    if words.rows:
        print()
        print_columns(words.columns, words.rows, text_columns=TEXT_COLUMNS)
    if words.remarks:
        print()
    for line in words.remarks:
        print(printable(line))
