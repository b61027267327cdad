"""Reads a lake for the report: of each segment the pieces of whole minutes, its records' clocks, and its stats.

    LAKE/minutes/day=.../...    `schema.PIECES`
    LAKE/rounds/day=.../...     has the columns of `schema.HEADERS`
    LAKE/segments/key=.../...   has what the segment says of itself, in `stats`

Law: a report from the lake and one from the logs in windows of the same minutes agree, where no clock was off and rounds are of
one length. Times are as stamped, and a broker stood still by the length of its segment's own rounds, because a segment is
converted by itself; the report names the brokers whose clocks were off.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any, Final

from rgd.analysis.asked import Asked
from rgd.analysis.discovery import Segment
from rgd.analysis.errors import BadLake
from rgd.analysis.headers import Sampling
from rgd.analysis.lake_names import key_and_size
from rgd.analysis.log_facts import Stats
from rgd.analysis.pieces import MINUTE_MS
from rgd.analysis.schema import HEADERS, PIECES, Columns, arrow

_NEVER_MS: Final = (1 << 63) - 1


def headers_of(file: Segment, sampling: Sampling, names: set[str] | None = None) -> Iterator[Any]:
    """The sampled clocks in a file, as `pyarrow.RecordBatch`es of `schema.HEADERS`; only `rounds` have any.

    `names` receives those of groups, which only `minutes` have.
    """
    import pyarrow as pa

    if file.path.startswith("minutes") and names is not None:
        names.update(_read(file, {"group": "string"})["group"].unique().to_pylist())
    if file.path.startswith("rounds"):
        headers = _read(file, HEADERS)
        is_kept = list(map(sampling.holds, headers["sequence"].to_pylist()))
        yield from headers.filter(pa.array(is_kept, pa.bool_())).to_batches()


def pieces_of(file: Segment, window_ms: int, asked: Asked) -> Iterator[Any]:
    """The pieces in a file, or the `Stats`, as `rgd.analysis.reading.segment_pieces` gives them.

    Args:
        file: where it is; `rounds` have neither.
        window_ms: length of a window, whole minutes.
        asked: leaves out other groups, minutes that begin outside its range, and the stats of segments that have no record
            in it.
    """
    import pyarrow.compute as pc

    ends = asked.within.from_ms or 0, asked.within.to_ms or _NEVER_MS
    from_ms, to_ms = (min(end, _NEVER_MS) for end in ends)
    if file.path.startswith("segments"):
        stats = Stats.from_json(json.loads(_read(file, {"stats": "string"})["stats"][0].as_py()))
        contents = stats.contents
        if (contents.first_ms or 0) < to_ms and from_ms <= (contents.last_ms or from_ms):
            yield replace(stats, is_of_lake=True)
    if not file.path.startswith("minutes"):
        return
    pieces = _read(file, PIECES)
    begins_ms = pc.multiply(pieces["window"], MINUTE_MS)
    pieces = pieces.filter(pc.and_(pc.greater_equal(begins_ms, from_ms), pc.less(begins_ms, to_ms)))
    if asked.groups:
        pieces = pieces.filter(pc.field("group").isin(sorted(asked.groups)))
    place = pieces.schema.get_field_index("window")
    windows = pc.divide(pieces["window"], window_ms // MINUTE_MS)
    yield from pieces.set_column(place, pieces.schema.field(place), windows).to_batches()


def _read(file: Segment, columns: Columns) -> Any:
    import pyarrow.parquet as pq

    data = file.ranges().read(file.size, 0)
    try:
        return pq.read_table(BytesIO(data), columns=list(columns)).cast(arrow(columns))
    except (OSError, ValueError, NotImplementedError) as exc:
        key, _ = key_and_size(file.path) or ("*", 0)
        remedy = f"delete segments/key={key} from the lake and convert its log again"
        raise BadLake(f"{file.name} is not what rgd wrote ({exc}); {remedy}") from exc
