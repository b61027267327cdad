"""Records as Arrow batches: a row for each group and kind of each round (`schema.ROWS`).

Law: a batch has exactly the types of the schema, and at most `BATCH_ROWS_MAX` rows and the rows of
one record. A record without rows leaves none; damage leaves one with nothing but its place and reason.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rgd.analysis.continuity import incarnation_name
from rgd.analysis.schema import ROWS, arrow
from rgd.analysis.segments import Damage, Logged
from rgd.core.exchange.messages import RoundRecord, ShareRow
from rgd.core.units import MILLI, NS_PER_MS, Milli

#: Rows gathered before a batch goes out.
BATCH_ROWS_MAX: Final = 20_000

_Value = bool | int | float | str | None


def batches(
    segment: str, found: Iterable[Logged | Damage], *, rows_max: int = BATCH_ROWS_MAX
) -> Iterator[Any]:
    """Turn what a segment holds into `pyarrow.RecordBatch`es."""
    gathered: list[tuple[_Value, ...]] = []
    for item in found:
        if isinstance(item, Damage):
            gathered.append(_damage_row(segment, item))
        else:
            gathered += _record_rows(segment, item)
        if len(gathered) >= rows_max:
            yield _batch(gathered)
            gathered = []
    if gathered:
        yield _batch(gathered)


def _batch(gathered: list[tuple[_Value, ...]]) -> Any:
    import pyarrow as pa

    schema = arrow(ROWS)
    columns = zip(*gathered, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _damage_row(segment: str, damage: Damage) -> tuple[_Value, ...]:
    blank = (None,) * (len(ROWS) - 3)
    return (segment, damage.offset, *blank, damage.reason)


def _record_rows(segment: str, logged: Logged) -> Iterator[tuple[_Value, ...]]:
    record = logged.record
    head = (segment, logged.offset, logged.index, logged.timestamp_ms, *_of_record(record))
    for row in record.rows:
        yield (*head, *_of_row(row), None)


def _of_record(record: RoundRecord) -> tuple[_Value, ...]:
    return (
        record.speaker.broker,
        incarnation_name(record.speaker.incarnation),
        record.sequence,
        record.period_ns / NS_PER_MS,
        record.isolated,
        json.dumps(dict(record.peers)),
    )


def _of_row(row: ShareRow) -> tuple[_Value, ...]:
    usage = row.usage
    return (
        usage.group,
        usage.kind,
        usage.topics,
        usage.admitted.messages / MILLI,
        usage.admitted.bytes / MILLI,
        usage.wanted.messages / MILLI,
        usage.wanted.bytes / MILLI,
        *usage.admitted_total,
        *usage.wanted_total,
        *row.refused,
        _units(row.share[0]),
        _units(row.share[1]),
        _units(row.quota[0]),
        _units(row.quota[1]),
        row.policy,
        row.sent,
    )


def _units(rate: Milli | None) -> float | None:
    return None if rate is None else rate / MILLI
