"""Records as Arrow batches: a row for each group and kind of each round (`schema.ROWS`).

Law: a batch has exactly the types of the schema, and at most `BATCH_ROWS_MAX` rows plus the rows of
one record. A record without rows gives none. Damage gives a row with only its offset and
reason, in a batch after those of the records around it.

Columns stay columns from the wire to Arrow: no row is ever an object.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from rgd.analysis.chunks import DIMENSIONS, KIND_NAMES, POLICY_NAMES
from rgd.analysis.continuity import incarnation_name
from rgd.analysis.schema import ROWS, batch_of
from rgd.analysis.segments import Damage, Logged
from rgd.core.exchange.columns import Codes, Ints, ShareColumns
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_MS
from rgd.wire.row_range import RowRange

#: Rows gathered before a batch goes out.
BATCH_ROWS_MAX: Final = 20_000


def batches(
    segment: str, found: Iterable[Logged | Damage], *, rows_max: int = BATCH_ROWS_MAX
) -> Iterator[Any]:
    """Convert a segment's records to `pyarrow.RecordBatch`es."""
    records: list[Logged] = []
    damages: list[Damage] = []
    rows = 0
    for item in found:
        if isinstance(item, Damage):
            damages.append(item)
            rows += 1
        else:
            records.append(item)
            rows += len(item.record.rows)
        if rows >= rows_max:
            yield from _batches(segment, records, damages)
            records, damages, rows = [], [], 0
    yield from _batches(segment, records, damages)


def _batches(segment: str, records: list[Logged], damages: list[Damage]) -> Iterator[Any]:
    if any(len(logged.record.rows) for logged in records):
        yield batch_of(
            ROWS,
            _of_records(segment, records)
            | usage_columns(RowRange.join(logged.record.rows for logged in records)),
        )
    if damages:
        yield batch_of(
            ROWS,
            {
                "segment": _text([segment] * len(damages)),
                "offset": [damage.offset for damage in damages],
                "damage": [damage.reason for damage in damages],
            },
        )


def _of_records(segment: str, records: list[Logged]) -> dict[str, Any]:
    """[rows] the values that all rows of a record have in common."""
    import pyarrow as pa

    logged_records = [logged.record for logged in records]
    columns = {
        "segment": _text([segment] * len(records)),
        "offset": pa.array([logged.offset for logged in records], pa.int64()),
        "index": pa.array([logged.index for logged in records], pa.int64()),
        "broker_timestamp": pa.array([logged.timestamp_ms for logged in records], pa.int64()),
        "broker": _text([record.sender.broker for record in logged_records]),
        "incarnation": _text(
            [incarnation_name(record.sender.incarnation) for record in logged_records]
        ),
        "sequence": pa.array([record.sequence for record in logged_records], pa.int64()),
        "period_ms": pa.array(
            [record.period_ns / NS_PER_MS for record in logged_records], pa.float64()
        ),
        "isolated": pa.array([record.isolated for record in logged_records], pa.bool_()),
        "weight": pa.array([record.weight for record in logged_records], pa.int64()),
        "peers": _text([json.dumps(dict(record.peers)) for record in logged_records]),
    }
    counts = [len(logged.record.rows) for logged in records]
    places = pa.array(np.repeat(np.arange(len(records)), counts))
    return {name: column.take(places) for name, column in columns.items()}


def usage_columns(rows: ShareColumns) -> dict[str, Any]:
    """[rows] the values of each row, but for those of its record."""
    usage = rows.usage
    columns: dict[str, Any] = {
        "group": usage.groups,
        "kind": named(usage.kinds, KIND_NAMES),
        "topics": usage.topics,
        "policy": named(rows.policies, POLICY_NAMES),
        "sent": rows.sent,
    }
    for place, of in enumerate(DIMENSIONS):
        columns[f"admitted_{of}"] = usage.admitted[:, place] / MILLI
        columns[f"wanted_{of}"] = usage.wanted[:, place] / MILLI
        columns[f"admitted_{of}_total"] = rows.admitted_total[:, place]
        columns[f"wanted_{of}_total"] = rows.wanted_total[:, place]
        columns[f"refused_{of}"] = rows.refused[:, place]
        columns[f"share_{of}"] = _units(rows.share[:, place])
        columns[f"quota_{of}"] = _units(rows.quota[:, place])
        columns[f"quota_{of}_milli"] = _milli(rows.quota[:, place])
    return columns


def _text(values: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.string())


def named(codes: Codes | Ints, names: Sequence[str]) -> Any:
    """The names at the indexes in `names`."""
    import pyarrow as pa

    return _text(names).take(pa.array(codes))


def _milli(rates: Ints) -> Any:
    """Thousandths of a unit per second, null where unlimited."""
    import pyarrow as pa

    return pa.array(rates, pa.int64(), mask=rates == NO_RATE)


def _units(rates: Ints) -> Any:
    """Units per second, null where unlimited."""
    import pyarrow as pa

    return pa.array(rates / MILLI, pa.float64(), mask=rates == NO_RATE)
