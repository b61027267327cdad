"""Tables of the page: rows of texts and figures. No cell has information in its colour alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from rgd.analysis.findings import Finding
from rgd.analysis.wording import FAIR_JAIN, REFUSED_BY, Column


class Figure(str):
    """A figure as it is shown."""

    __slots__ = ("mark", "value")

    #: A class of `page.css`; red is for starvation only.
    mark: str
    #: What the table is sorted by; empty where there is none.
    value: str

    @classmethod
    def of(cls, column: Column, finding: Finding) -> "Figure":
        """The figure of a column."""
        _, key, text = column
        figure, number = cls(text(finding)), finding[key]
        figure.value = "" if number is None else f"{number:g}"
        is_poor = key == "jain_mean" and number is not None and number < FAIR_JAIN
        figure.mark = "poor" if is_poor else "bad" if key == "starved_s" and number else ""
        return figure


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names the row, and whose first `words` columns are text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    caption: str = ""
    is_open: bool = False

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        columns: Sequence[Column],
        rows: Sequence[tuple[Sequence[str], Finding]],
        caption: str = "",
    ) -> "Table":
        """Some columns of words, and behind them those of figures.

        Args:
            names: headings of the columns of words.
            columns: of figures.
            rows: the words of each row, and the finding that has its figures.
            caption: what a reader clicks on.
        """
        cells = [[*texts, *(Figure.of(one, finding) for one in columns)] for texts, finding in rows]
        headings = (*names, *(heading for heading, _, _ in columns))
        return cls(headings, cells, len(names), caption)

    @property
    def is_text(self) -> list[bool]:
        """Whether each column is words."""
        return [at < self.words or name == REFUSED_BY for at, name in enumerate(self.columns)]
