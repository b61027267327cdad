"""Tables on a terminal and in a pipe: nothing is ever cut off.

On a terminal a table is as wide as it is; in a pipe it is as wide as its cells need.
"""

# ruff: noqa: PLC0415 -- rich is imported by what prints, so that --help stays fast

import sys
from collections.abc import Iterable, Sequence

#: Width in a pipe, where nobody wraps lines, in characters.
PIPE_WIDTH = 1000


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text_columns: int = 1,
    title: str | None = None,
    total: Sequence[str] | None = None,
) -> None:
    """Print a table.

    Args:
        columns: headings.
        rows: cells, as many as there are headings.
        text_columns: so many columns from the left hold words; the others hold numbers.
        title: stands above.
        total: a last row, set off.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        is_text = place < text_columns
        table.add_column(escape(column), justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    if total is not None:
        table.add_section()
        table.add_row(*map(escape, total))
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
