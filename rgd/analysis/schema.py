"""The columns that cross between Python, Arrow and Spark: `schema.toml` declares each table once.

Law: a table's Spark schema and its Arrow schema come from the same list, because Spark refuses a
batch whose types differ in the least. Integers are signed: Spark has no others, so a broker's
incarnation (64 bits, a name rather than a number) is written as 16 hexadecimal digits.

`ROWS` is the table of `spark.read.format("rgd")`; `PIECES` is sent between the steps of
the report; `WINDOWS` is the report's Parquet output.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

#: A table's columns in order: name to Spark type, in the words of Spark's DDL.
Columns = Mapping[str, str]

#: A string of which there are few: Arrow has them once, and a number for each row.
NAME: Final = "name"


_TABLES: Final = tomllib.loads(
    files(__package__).joinpath("schema.toml").read_text(encoding="utf-8")
)
ROWS: Final[Columns] = _TABLES["rows"]
PIECES: Final[Columns] = _TABLES["pieces"]
HEADERS: Final[Columns] = _TABLES["headers"]
WINDOWS: Final[Columns] = _TABLES["windows"]


def ddl(columns: Columns) -> str:
    """The table's schema for Spark."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow(columns: Columns) -> Any:
    """The table's schema for Arrow (a `pyarrow.Schema`)."""
    return _arrow(tuple(columns.items()))


def batch_of(columns: Columns, values: Mapping[str, Any]) -> Any:
    """A `pyarrow.RecordBatch` of a table; columns without values are null."""
    import pyarrow as pa

    rows = len(next(iter(values.values())))
    arrays = [
        pa.array(values[field.name], field.type)
        if field.name in values
        else pa.nulls(rows, field.type)
        for field in arrow(columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow(columns))


@cache
def _arrow(columns: tuple[tuple[str, str], ...]) -> Any:
    import pyarrow as pa

    return pa.schema([(name, _type(kind)) for name, kind in columns])


def _type(kind: str) -> Any:
    """Arrow's type for a word of Spark's DDL; structures have plain members."""
    import pyarrow as pa

    if kind.startswith("array<"):
        return pa.list_(_type(kind[len("array<") : -1]))
    if kind.startswith("struct<"):
        members = (member.split(":") for member in kind[len("struct<") : -1].split(","))
        return pa.struct([(name, _type(of)) for name, of in members])
    types = {
        "string": pa.string(),
        NAME: pa.dictionary(pa.int32(), pa.string()),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
    }
    return types[kind]
