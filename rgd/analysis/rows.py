"""Records as Arrow batches: a row for each group and kind of each round (`schema.ROWS`).

Law: a batch has exactly the types of the schema, and at most `BATCH_ROWS_MAX` rows plus the rows of
one record. A record without rows gives none. Damage gives a row with only its offset and
reason, in a batch after those of the records around it.

Columns stay columns from the wire to Arrow: no row is ever an object.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rgd.analysis.record_columns import by_row, sender_columns
from rgd.analysis.row_columns import DIMENSIONS, KIND_NAMES, POLICY_NAMES, Table
from rgd.analysis.schema import ROWS, batch_of
from rgd.analysis.segments import Damage, Logged
from rgd.core.exchange.columns import Codes, Ints, ShareColumns
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI
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
                "segment": [segment] * len(damages),
                "offset": [damage.offset for damage in damages],
                "damage": [damage.reason for damage in damages],
            },
        )


def _of_records(segment: str, records: list[Logged]) -> Table:
    """[rows] the values that all rows of a record have in common."""
    columns = sender_columns(records) | {
        "segment": [segment] * len(records),
        "offset": [logged.offset for logged in records],
        "index": [logged.index for logged in records],
        "broker_timestamp": [logged.timestamp_ms for logged in records],
        "isolated": [logged.record.isolated for logged in records],
        "weight": [logged.record.weight for logged in records],
        "peers": [json.dumps(dict(logged.record.peers)) for logged in records],
    }
    return by_row(columns, records, ROWS)


def usage_columns(rows: ShareColumns) -> Table:
    """[rows] the values of each row, but for those of its record."""
    usage = rows.usage
    columns: Table = {
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


def named(codes: Codes | Ints, names: Sequence[str]) -> Any:
    """The names at the indexes in `names`."""
    import pyarrow as pa

    return pa.array(names, pa.string()).take(pa.array(codes))


def _milli(rates: Ints) -> Any:
    """Thousandths of a unit per second, null where unlimited."""
    import pyarrow as pa

    return pa.array(rates, pa.int64(), mask=rates == NO_RATE)


def _units(rates: Ints) -> Any:
    """Units per second, null where unlimited."""
    import pyarrow as pa

    return pa.array(rates / MILLI, pa.float64(), mask=rates == NO_RATE)
