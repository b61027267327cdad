"""Tables of the page: every cell is escaped, and no cell has information in its colour alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rgd.analysis.findings import Finding
from rgd.analysis.wording import FAIR_JAIN, REFUSED_BY, Column


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is more than words."""

    text: str
    #: A class of `page.css`; none: `text` in columns of words.
    mark: str = ""
    #: The figure that the table is sorted by; empty where there is none.
    value: str | None = None
    #: In place of the text.
    html: str = ""


def figures_of(columns: Sequence[Column], finding: Finding) -> list[Cell]:
    """The cells of columns of figures."""
    return [
        # Sorted by the figures, not by how they are shown; nothing where there is none.
        Cell(
            text(finding),
            _mark(key, finding[key]),
            value="" if finding[key] is None else f"{finding[key]:g}",
        )
        for _, key, text in columns
    ]


def headings(words: str, columns: Sequence[Column]) -> list[str]:
    """The headings of some columns of words and of those of figures."""
    return [*words.split(", "), *(heading for heading, _, _ in columns)]


def _mark(key: str, figure: float | None) -> str:
    """Red is for starvation only. One window may be the delay of one exchange, so a low ratio by itself is not marked."""
    if key == "starved_s":
        return "bad" if figure else ""
    if key == "jain_mean":
        return "" if figure is None or figure >= FAIR_JAIN else "poor"
    return ""


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str | Cell]], *, words: int, name: str = ""
) -> str:
    """A table whose first column names the row, and whose first `words` columns are text.

    `name` identifies the one that `page.js` sorts and searches.
    """
    classes = [
        "text" if at < words or column == REFUSED_BY else "" for at, column in enumerate(columns)
    ]
    heads = "".join(
        f'<th scope="col"{_class(kind)}>{escape(column)}</th>'
        for kind, column in zip(classes, columns, strict=True)
    )
    body = "\n".join(_row(row, classes) for row in rows)
    named = f' id="{name}" data-words="{words}"' if name else ""
    return (
        f'<div class="scroll"><table{named}><thead><tr>{heads}</tr></thead><tbody>\n'
        f"{body}\n</tbody></table></div>"
    )


def _row(row: Sequence[str | Cell], classes: Sequence[str]) -> str:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    texts = [cell.html or escape(cell.text) for cell in cells]
    values = ["" if cell.value is None else f' data-v="{cell.value}"' for cell in cells]
    marks = [_class(cell.mark or name) for cell, name in zip(cells, classes, strict=True)]
    body = "".join(
        f"<td{mark}{value}>{text}</td>"
        for mark, value, text in list(zip(marks, values, texts, strict=True))[1:]
    )
    return f'<tr><th scope="row">{texts[0]}</th>{body}</tr>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
