"""Reduces a segment's rows to each broker's counts in each window, before Spark sees them.

A row has a cumulative counter at the end of a round, and the length of the round. So each
broker, incarnation, group and kind has a curve, the total over time, of which a row is a straight
piece. Curves are split at the windows' borders, and the part in one window is one *piece*: the
earliest moment and the totals there (`before`), the latest and the totals there (`after`).

Law: pieces merge in any order and grouping (least `before`, greatest `after`, sums for the rest). The
growth of a curve over all its pieces and the gaps between them equals the counter, so a
missing record loses nothing. If lost records share a total's growth with a round, the round's part is its own
rate times its period; the rest stays a gap between two pieces, which `rgd.analysis.windows` fills.

Shares, quotas and refusals, which are not cumulative, are weighted by the time a piece covers; the
policy, the broker's weight and the quota in thousandths are those of its last row. A mean of equal
quotas is not exactly that quota, so whatever compares quotas compares the thousandths, as logged.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rgd.analysis.continuity import GAP_ROUNDS_MIN, is_loss
from rgd.analysis.presence import SILENT_ROUNDS_MIN
from rgd.analysis.row_columns import AMOUNTS, DIMENSIONS, POLICY_NAMES, Floats, Series, Table
from rgd.analysis.schema import PIECES, arrow
from rgd.core.exchange.columns import Ints

LIMITS: Final = tuple(f"{limit}_{of}" for limit in ("share", "quota") for of in DIMENSIONS)

#: The quotas as they were logged: thousandths, `NO_RATE` for unlimited.
QUOTAS: Final = tuple(f"quota_{of}_milli" for of in DIMENSIONS)

#: How the columns of two pieces of one window become one.
MERGED: Final[Mapping[str, np.ufunc]] = {
    **dict.fromkeys(("from_ms", *(f"{amount}_before" for amount in AMOUNTS)), np.minimum),
    **dict.fromkeys(("to_ms", "period_ms", *(f"{amount}_after" for amount in AMOUNTS)), np.maximum),
    **dict.fromkeys((f"quota_{of}_max" for of in DIMENSIONS), np.maximum),
    **dict.fromkeys((f"refused_{of}" for of in DIMENSIONS), np.add),
    **{f"{limit}_{what}": np.add for limit in LIMITS for what in ("units", "limited_ms")},
    "covered_ms": np.add,
}

#: A lake has the pieces of whole minutes.
MINUTE_MS: Final = 60_000

#: A piece covers at least this much time, so that a clock that stands still divides nothing by 0.
PIECE_MS_MIN: Final = 1.0

#: A counter that has reached less than this many of its row's rounds began in that row: a burst at
#: the start of a busy time makes the row's rate, which is that of its last moments, explain too little.
YOUNG_ROUNDS: Final = 1.9


def merge(table: Table, *keys: Ints) -> tuple[Table, Ints]:
    """Merge pieces with equal keys.

    Args:
        table: columns of numbers, in the order of `keys`, latest last within a key.
        keys: columns of integers; equal ones stand together.

    Returns:
        The merged columns, and the place of each one's last piece in the old order.
    """
    starts = starts_of(*keys)
    last = np.append(starts[1:], len(keys[0])) - 1
    if (last > starts + 1).any():
        return {name: join.reduceat(table[name], starts) for name, join in MERGED.items()}, last
    # Nearly all windows of a round have two pieces, or one: this takes a third of the time.
    merged = {name: table[name][starts] for name in MERGED}
    is_pair = last > starts
    for name, join in MERGED.items():
        join(merged[name], table[name][last], out=merged[name], where=is_pair)
    return merged, last


def split_at_borders(
    from_ms: Floats, to_ms: Floats, window_ms: int
) -> tuple[Ints, Ints, Floats, Floats]:
    """Split stretches of time at the borders of windows.

    Returns:
        For each part: which stretch it is of, which window it is in (the window's number), and where
        in the stretch it begins and ends (0 to 1).
    """
    first = np.floor(from_ms / window_ms).astype(np.int64)
    last = np.maximum(first, np.ceil(to_ms / window_ms).astype(np.int64) - 1)
    parts = last - first + 1
    stretch = np.repeat(np.arange(len(parts)), parts)
    index = np.arange(len(stretch)) - np.repeat(np.cumsum(parts) - parts, parts)
    window = first[stretch] + index
    length = np.maximum((to_ms - from_ms)[stretch], 1e-9)
    begin = np.clip((window * window_ms - from_ms[stretch]) / length, 0.0, 1.0)
    end = np.clip(((window + 1) * window_ms - from_ms[stretch]) / length, 0.0, 1.0)
    return stretch, window, begin, end


def reduce_rows(rows: Table, names: Series, window_ms: int, round_ms: float) -> Any:
    """Reduce rows (`row_columns.rows_of`) to a `pyarrow.Table` of `PIECES`.

    A row of several rounds is of a broker that stood still in it. What it counted is put in the first
    of these rounds, because nothing was counted while it stood still; it covers no time, so the
    broker is not judged there.
    """
    import pyarrow as pa

    series = rows["series"]
    if not len(series):
        return arrow(PIECES).empty_table()
    curve = _curve(rows)
    _shorten(curve, round_ms)
    pieces, stretch, window = _split_rows(curve, window_ms)
    merged, last = merge(pieces, series[stretch], window)
    row = stretch[last]
    columns = {name: pa.array(merged[name], pa.float64()) for name in merged}
    columns |= names.columns(series[row])
    columns |= {name: pa.array(rows[name][row], pa.int64()) for name in (*QUOTAS, "weight")}
    policies = pa.array(POLICY_NAMES, arrow(PIECES).field("policy").type)
    columns["policy"] = policies.take(pa.array(rows["policy"][row]))
    columns["window"] = pa.array(window[last], pa.int64())
    row_ends = np.flatnonzero(np.diff(stretch, append=-1))
    minute = window[row_ends] * window_ms // MINUTE_MS
    columns["refused_by"] = _refused_by(rows, row_ends, minute, last)
    return pa.table([columns[name] for name in PIECES], schema=arrow(PIECES))


def _refused_by(rows: Table, row_ends: Ints, minute: Ints, last: Ints) -> Any:
    """What each level refused of a series in a minute, in the piece that the minute's first row ends in; empty in the others.

    Args:
        rows: the rows.
        row_ends: [rows] the last part of each row.
        minute: [rows] in which it is.
        last: [pieces] the last part of each piece.
    """
    import pyarrow as pa

    levels = rows["refused_by"]
    if levels is None:
        return pa.nulls(len(last), arrow(PIECES).field("refused_by").type)
    first = starts_of(rows["series"], minute)
    sums = np.add.reduceat(levels.reshape(len(levels), -1), first)
    sizes = np.zeros(len(last), np.int64)
    sizes[np.searchsorted(last, row_ends[first])] = np.where(sums.any(axis=1), sums.shape[1], 0)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    listed = pa.array(sums[sums.any(axis=1)].reshape(-1), pa.int64())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), listed)


def _curve(rows: Table) -> Table:
    """Each row's piece of its curve, not yet split; rows are in the order of series and time."""
    series = rows["series"]
    to_ms = rows["timestamp_ms"]
    period_ms = np.maximum(rows["period_ms"], PIECE_MS_MIN)
    is_first = np.ones(len(series), bool)
    is_first[1:] = series[1:] != series[:-1]
    previous_ms = np.where(is_first, to_ms - period_ms, np.roll(to_ms, 1))
    gap_ms = to_ms - period_ms - previous_ms
    after = _rising(rows["totals"].astype(np.float64), series)
    own = rows["rates"] * (period_ms / 1000)[:, None]
    grown = np.where(is_first[:, None], own, after - np.roll(after, 1, axis=0))
    rounds = np.maximum(1.0, gap_ms / period_ms)[:, None]
    lost = is_loss(grown - own, own, rounds).any(axis=1)
    lost &= ~is_first & (gap_ms >= GAP_ROUNDS_MIN * period_ms)
    is_young = is_first & (after <= np.maximum(1.0, YOUNG_ROUNDS * own)).all(axis=1)
    part = np.where((lost | is_first)[:, None], np.minimum(own, grown), grown)
    before = np.where(is_young[:, None], 0.0, np.maximum(0.0, after - part))
    curve: Table = {
        "from_ms": np.minimum(np.maximum(to_ms - period_ms, previous_ms), to_ms - PIECE_MS_MIN),
        "to_ms": to_ms,
        "period_ms": period_ms,
    }
    for place, amount in enumerate(AMOUNTS):
        curve |= {f"{amount}_before": before[:, place], f"{amount}_after": after[:, place]}
    for place, of in enumerate(DIMENSIONS):
        curve[f"refused_{of}"] = rows["refused"][:, place]
    return curve | {limit: rows[limit] for limit in LIMITS}


def _shorten(rows: Table, round_ms: float) -> None:
    """Let rows of brokers that stood still end after a round, and cover no time."""
    is_silent = rows["period_ms"] > SILENT_ROUNDS_MIN * round_ms
    first = np.minimum(rows["from_ms"] + round_ms, rows["to_ms"])
    rows["to_ms"] = np.where(is_silent, first, rows["to_ms"])
    rows["period_ms"] = np.where(is_silent, round_ms, rows["period_ms"])
    rows["covers"] = np.where(is_silent, 0.0, 1.0)


def _split_rows(rows: Table, window_ms: int) -> tuple[Table, Ints, Ints]:
    """Split the rows at the windows' borders; and which row and window each piece is of."""
    stretch, window, begin, end = split_at_borders(rows["from_ms"], rows["to_ms"], window_ms)
    from_ms, length = rows["from_ms"][stretch], (rows["to_ms"] - rows["from_ms"])[stretch]
    covered = length * (end - begin) * rows["covers"][stretch]
    pieces: Table = {
        "from_ms": from_ms + length * begin,
        "to_ms": from_ms + length * end,
        "period_ms": rows["period_ms"][stretch],
        "covered_ms": covered,
    }
    for amount in AMOUNTS:
        before = rows[f"{amount}_before"][stretch]
        grown = rows[f"{amount}_after"][stretch] - before
        pieces[f"{amount}_before"] = before + grown * begin
        pieces[f"{amount}_after"] = before + grown * end
    for of in DIMENSIONS:
        pieces[f"refused_{of}"] = rows[f"refused_{of}"][stretch] * (end - begin)
        quota = rows[f"quota_{of}"][stretch]
        pieces[f"quota_{of}_max"] = np.where(np.isnan(quota), np.inf, quota)
    for limit in LIMITS:
        rate = rows[limit][stretch]
        pieces[f"{limit}_units"] = np.nan_to_num(rate) * covered
        pieces[f"{limit}_limited_ms"] = np.where(np.isnan(rate), 0.0, covered)
    return pieces, stretch, window


def _rising(totals: Floats, series: Ints) -> Floats:
    """[rows, amounts] counters, which never fall: a row that repeats an older report does not lower one."""
    falls = (totals[1:] < totals[:-1]).any(axis=1) & (series[1:] == series[:-1])
    for number in np.unique(series[1:][falls]).tolist():
        start, end = np.searchsorted(series, [number, number + 1])
        np.maximum.accumulate(totals[start:end], axis=0, out=totals[start:end])
    return totals


def starts_of(*keys: Ints) -> Ints:
    """Where a new combination of keys begins."""
    is_start = np.ones(len(keys[0]), bool)
    if len(is_start):
        is_start[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(is_start)
