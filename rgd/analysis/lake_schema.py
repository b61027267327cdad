"""The tables of the lake (`rgd.analysis.lake`): `lake.toml` has every column with its type and its meaning.

    python -m rgd.analysis.lake_schema docs/lake.md

Law: the tables of docs/lake.md are this module's output, and the files have these columns in this order.
"""

import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from rgd.analysis.schema import PIECES, Columns

#: Written into rgd-lake.json; another number is another lake.
LAKE_VERSION: Final = 2

#: By name: what a `row` is, and the `columns`, each with Spark's type and its meaning.
LAKE: Final[Mapping[str, Any]] = tomllib.loads(
    files(__package__).joinpath("lake.toml").read_text(encoding="utf-8")
)


def columns_of(table: str) -> Columns:
    """A table's columns with their Spark types; `minutes` are for reports alone, so that its columns may change."""
    if table == "minutes":
        return PIECES
    return {name: kind for name, (kind, _) in LAKE[table]["columns"].items()}


def described() -> str:
    """The tables as docs/lake.md has them behind its own words."""
    parts = []
    for table, of in LAKE.items():
        columns = of["columns"].items()
        rows = (f"| `{name}` | {kind} | {text} |" for name, (kind, text) in columns)
        head = "| column | type | meaning |\n| --- | --- | --- |"
        parts.append("\n".join([f"## `{table}`\n\n{of['row']}\n\n{head}", *rows]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        words, heading, _ = page.read_text(encoding="utf-8").partition("## `usage`")
        assert heading, f"{page} has no tables of the lake"
        page.write_text(words + described(), encoding="utf-8")
