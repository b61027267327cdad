"""Tables on a terminal and in a pipe: no cell is ever truncated.

On a terminal a table has the terminal's width; in a pipe it has the width of its cells. `print_columns`
draws no lines in a pipe, so that `grep` and `awk` can read it.
"""

# ruff: noqa: PLC0415 -- rich is imported by what prints, so that --help stays fast

import sys
from collections.abc import Iterable, Sequence

from rgd.text import printable

#: Width in a pipe, where lines are not wrapped, in characters.
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
        table.add_row(*(escape(printable(cell)) for cell in row))
    if total is not None:
        table.add_section()
        table.add_row(*map(escape, total))
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with console.capture() as drawn:
        console.print(table)
    # Not printed by rich itself, which ends the process with 1 when the reader has left.
    print(drawn.get(), end="")


def print_columns(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1
) -> None:
    """Print a table on a terminal, and in a pipe the same as columns without lines.

    Args:
        columns: headings.
        rows: cells, as many as there are headings; no cell is empty.
        text_columns: so many columns from the left hold words; the others hold numbers.
    """
    if sys.stdout.isatty():
        print_table(columns, rows, text_columns=text_columns)
        return
    lines = [[column.upper().replace(" ", "_") for column in columns]]
    lines += [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell.ljust(width) if place < text_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
