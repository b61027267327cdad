"""The columns that cross between Python, Arrow and Spark, each table declared once.

Law: a table's Spark schema and its Arrow schema come from the same list, because Spark refuses a
batch whose types differ in the least. Integers are signed: Spark has no others, so a broker's
incarnation (64 bits, a name rather than a number) is written as 16 hexadecimal digits.

`ROWS` is the table of `spark.read.format("rgd")`; `PIECES` is sent between the steps of
the report; `WINDOWS` is the report's Parquet output.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

#: A table's columns in order: name to Spark type, in the words of Spark's DDL.
Columns = Mapping[str, str]

#: A string of which there are few: Arrow has them once, and a number for each row.
NAME: Final = "name"


def _columns(**types: str) -> Columns:
    return MappingProxyType(types)


#: A row of a record: one group, one kind, one round of one broker. Rates and amounts are units per
#: second and whole units; share and quota are null where unlimited. A stretch of a segment that
#: cannot be read is a row with `damage` and nulls.
ROWS: Final = _columns(
    segment="string",
    offset="bigint",  # of the entry, in bytes from the start of the segment
    index="bigint",
    broker_timestamp="bigint",  # ms since 1970; the publish time where the broker set none
    broker="string",
    incarnation="string",
    sequence="bigint",
    period_ms="double",
    isolated="boolean",
    weight="bigint",  # of the broker in max-min, thousandths
    peers="string",  # JSON: name to the last sequence seen
    group="string",
    kind="string",
    topics="bigint",
    admitted_messages="double",
    admitted_bytes="double",
    wanted_messages="double",
    wanted_bytes="double",
    admitted_messages_total="bigint",
    admitted_bytes_total="bigint",
    wanted_messages_total="bigint",
    wanted_bytes_total="bigint",
    refused_messages="bigint",
    refused_bytes="bigint",
    share_messages="double",
    share_bytes="double",
    quota_messages="double",
    quota_bytes="double",
    quota_messages_milli="bigint",  # the quota as it was logged, in thousandths; compare these
    quota_bytes_milli="bigint",
    policy="string",
    sent="boolean",
    damage="string",
)

#: What one broker did of one group and kind in one window, as far as one segment shows it
#: (`rgd.analysis.pieces` says what the columns mean).
PIECES: Final = _columns(
    **dict.fromkeys(("group", "kind", "broker", "incarnation"), NAME),
    window="bigint",
    **dict.fromkeys(("from_ms", "to_ms", "period_ms"), "double"),
    **{
        f"{amount}_{dimension}_{side}": "double"
        for amount in ("admitted", "wanted")
        for dimension in ("messages", "bytes")
        for side in ("before", "after")
    },
    refused_messages="double",
    refused_bytes="double",
    **{
        f"{limit}_{dimension}_{what}": "double"
        for limit in ("share", "quota")
        for dimension in ("messages", "bytes")
        for what in ("units", "limited_ms")
    },
    quota_messages_max="double",
    quota_bytes_max="double",
    quota_messages_milli="bigint",  # of the latest row; `NO_RATE`: unlimited
    quota_bytes_milli="bigint",
    covered_ms="double",
    weight="bigint",
    policy=NAME,
    refused_by="array<bigint>",  # whole units of a series by `REFUSED_BY`, messages before bytes
)

#: What one record says of clocks (`rgd.analysis.headers`), read in a pass before the others.
HEADERS: Final = _columns(
    broker="string",
    incarnation="string",
    sequence="bigint",
    clock_ms="bigint",  # what the broker's wall clock said, ms since 1970
    local_ms="double",  # its monotonic clock
    period_ms="double",  # length of the round
    peers="array<string>",  # those of whom a sampled report had been received
    peer_incarnations="array<bigint>",  # lower 32 bits
    peer_sequences="array<bigint>",
)

#: One group, kind and dimension in one window. Rates in units per second; docs/report.md has the
#: formulas. Null is "unlimited" for quota and share, "cannot be said" for the rest.
WINDOWS: Final = _columns(
    group="string",
    kind="string",
    dimension="string",
    start_ms="bigint",
    seconds="double",
    policy="string",
    **dict.fromkeys(("admitted", "wanted", "refused", "recovered", "quota", "quota_max"), "double"),
    **dict.fromkeys(("utilisation", "overshoot", "unmet", "unused"), "double"),
    **dict.fromkeys(("jain", "lowest_ratio"), "double"),
    lowest_broker="string",
    brokers="array<struct<broker:string,admitted:double,wanted:double,refused:double,"
    "share:double,part:double,ratio:double,weight:bigint>>",
)


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

    per_broker = pa.struct(
        [("broker", pa.string())]
        + [
            (name, pa.float64())
            for name in ("admitted", "wanted", "refused", "share", "part", "ratio")
        ]
        + [("weight", pa.int64())]
    )
    types = {
        "string": pa.string(),
        NAME: pa.dictionary(pa.int32(), pa.string()),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "array<string>": pa.list_(pa.string()),
        "array<bigint>": pa.list_(pa.int64()),
        WINDOWS["brokers"]: pa.list_(per_broker),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns])
