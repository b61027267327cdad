"""An executor's work on the pieces of one group and kind: join, judge, summarise.

Law: one task does all work for a group, so that its windows cross the network once. The
result is its windows, with the findings about each dimension on that dimension's first row. The
stats of the segments, which are a group without a name, pass through.
"""

import json
from typing import Any

from rgd.analysis import tables
from rgd.analysis.fairness import judge
from rgd.analysis.findings import summarise
from rgd.analysis.schema import JUDGED, WINDOWS, arrow
from rgd.analysis.windows import GroupWindows, join


def judged_table(pieces: Any, window_ms: int, round_ms: float) -> Any:
    """Turn a `pyarrow.Table` of `schema.PIECES` into one of `schema.JUDGED`."""
    import pyarrow as pa

    pieces = pieces.combine_chunks()
    if pieces["group"][0].as_py() is None:
        return _passed_on(pieces["stats"])
    windows = join(pieces, window_ms)
    made = [
        _dimension(windows, of, window_ms, round_ms)
        for of, rates in windows.rates.items()
        if rates.is_used
    ]
    return pa.concat_tables(made) if made else arrow(JUDGED).empty_table()


def _dimension(windows: GroupWindows, of: str, window_ms: int, round_ms: float) -> Any:
    import pyarrow as pa

    judged = judge(windows, of)
    found = summarise(windows, of, judged, window_ms=window_ms, round_ms=round_ms)
    table = tables.write(windows, of, judged)
    findings = [json.dumps(found, allow_nan=False), *[None] * (table.num_rows - 1)]
    return table.append_column("findings", pa.array(findings, pa.string()))


def _passed_on(stats: Any) -> Any:
    import pyarrow as pa

    blank = {name: pa.nulls(len(stats), arrow(WINDOWS).field(name).type) for name in WINDOWS}
    return pa.table({**blank, "findings": stats}, schema=arrow(JUDGED))
