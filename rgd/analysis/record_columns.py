"""What records have once, however many rows they have, as columns: for tables, the lake and the clocks.

Law: a record gives one element to each column, in the order of the records.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rgd.analysis.continuity import incarnation_name
from rgd.analysis.row_columns import Table
from rgd.analysis.schema import Columns, arrow
from rgd.analysis.segments import Logged
from rgd.core.units import NS_PER_MS


def sender_columns(records: Sequence[Logged]) -> Table:
    """[records] who wrote them, and how long their rounds were."""
    of = [logged.record for logged in records]
    return {
        "broker": [one.sender.broker for one in of],
        "incarnation": [incarnation_name(one.sender.incarnation) for one in of],
        "sequence": [one.sequence for one in of],
        "period_ms": [one.period_ns / NS_PER_MS for one in of],
    }


def clock_columns(
    records: Sequence[Logged], holds: Callable[[int], bool] = lambda _: True
) -> Table:
    """[records] the columns of `schema.HEADERS`; of peers only those of whom a sequence had come that `holds`."""
    of = [logged.record for logged in records]
    seen = [
        [
            (broker, incarnation, sequence)
            for (broker, sequence), incarnation in zip(
                one.peers, one.peer_incarnations, strict=True
            )
            if holds(sequence)
        ]
        for one in of
    ]
    names = ("peers", "peer_incarnations", "peer_sequences")
    return {
        **sender_columns(records),
        "clock_ms": [logged.clock_ms for logged in records],
        "local_ms": [one.ended_ns / NS_PER_MS for one in of],
        **{name: [[one[at] for one in its] for its in seen] for at, name in enumerate(names)},
    }


def by_row(columns: Table, records: Sequence[Logged], types: Columns) -> Table:
    """[rows] columns of records for each of their rows, as Arrow's."""
    import pyarrow as pa

    counts = [len(logged.record.rows) for logged in records]
    places, schema = pa.array(np.repeat(np.arange(len(records)), counts)), arrow(types)
    return {
        name: pa.array(column, schema.field(name).type).take(places)
        for name, column in columns.items()
    }
