"""The rows of many records as columns of numbers, with names as numbers of one segment.

Law: no row is ever an object. Python sees a record once, and a name once a chunk; rows are arrays from
the wire on. A *series* is one (broker, incarnation, group, kind), whose counters make one curve.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rgd.analysis.continuity import Gap, incarnation_name, is_loss
from rgd.analysis.schema import PIECES, arrow
from rgd.analysis.segments import Logged
from rgd.core.exchange.columns import KINDS, POLICIES, Ints, UsageColumns
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_MS
from rgd.wire.row_range import RowRange

Floats = NDArray[np.float64]
#: Columns by name, of one length.
Table = dict[str, Any]

DIMENSIONS: Final = ("messages", "bytes")
AMOUNTS: Final = tuple(
    f"{amount}_{dimension}" for amount in ("admitted", "wanted") for dimension in DIMENSIONS
)

#: What names a series, in the order of `Series.known`.
SERIES_NAMES: Final = ("broker", "incarnation", "group", "kind")
KIND_NAMES: Final = [kind.value for kind in KINDS]
POLICY_NAMES: Final = [policy.value for policy in POLICIES]
#: Up to so many series are sorted by numbers of 16 bits, which takes a tenth of the time.
_SHORT_MAX: Final = np.iinfo(np.int16).max


class Series:
    """The series of one segment: their names by number, and the newest totals of each."""

    def __init__(self) -> None:
        self.known: list[tuple[str, str, str, str]] = []
        #: [series, 4] cumulative counters, in the order of `AMOUNTS`; -1 before the first row.
        self.totals: Ints = np.zeros((0, len(AMOUNTS)), np.int64)
        self._numbers: dict[tuple[str, str, str, str], int] = {}

    def number(self, records: Sequence[Logged], usage: UsageColumns, record: Ints) -> Ints:
        """The series of each row.

        Args:
            records: the records.
            usage: their rows together.
            record: [rows] the index of the row's record.
        """
        import pyarrow as pa

        senders = [logged.record.sender for logged in records]
        runs = {sender: code for code, sender in enumerate(dict.fromkeys(senders))}
        run = np.array([runs[sender] for sender in senders], np.int64)[record]
        encoded = pa.array(usage.groups, pa.string()).dictionary_encode()
        groups = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = (run * len(groups) + codes) * len(KINDS) + usage.kinds
        series = np.full(len(runs) * len(groups) * len(KINDS), -1, np.int64)
        is_there = np.zeros(len(series), bool)
        is_there[codes] = True
        named = list(runs)
        for code in np.flatnonzero(is_there).tolist():
            rest, kind = divmod(code, len(KINDS))
            place, group = divmod(rest, len(groups))
            sender = named[place]
            names = (sender.broker, incarnation_name(sender.incarnation))
            series[code] = self._number((*names, groups[group], KIND_NAMES[kind]))
        more = len(self.known) - len(self.totals)
        self.totals = np.concatenate([self.totals, np.full((more, len(AMOUNTS)), -1)])
        answer: Ints = series[codes]
        return answer

    def _number(self, names: tuple[str, str, str, str]) -> int:
        number = self._numbers.setdefault(names, len(self.known))
        if number == len(self.known):
            self.known.append(names)
        return number

    def only(self, groups: frozenset[str], rows: Table) -> Table:
        """The rows (`rows_of`) of some groups; all of them where none is named."""
        if not groups:
            return rows
        is_named = np.array([group in groups for _, _, group, _ in self.known], bool)[
            rows["series"]
        ]
        return {
            name: column if column is None else column[is_named] for name, column in rows.items()
        }

    def columns(self, series: Ints) -> Table:
        """The names of some series, as Arrow's columns."""
        import pyarrow as pa

        numbers, place = np.unique(series, return_inverse=True)
        known = [self.known[number] for number in numbers.tolist()]
        places = pa.array(place)
        columns = {}
        for name, column in zip(SERIES_NAMES, zip(*known, strict=True), strict=True):
            encoded = pa.array(column, arrow(PIECES).field(name).type)
            columns[name] = encoded.take(places)
        return columns


def numbered(column: Any) -> tuple[tuple[str, ...], Ints]:
    """The distinct names of a column of `schema.NAME` in order, and the number of each row's; null is ''."""
    encoded = column.combine_chunks()
    known = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(known)).to_numpy()
    names = np.array([*known, ""], object)
    # A dictionary may have more than the rows use.
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    used = used[np.argsort(names[used])]
    number = np.empty(len(names), np.int64)
    number[used] = np.arange(len(used))
    return tuple(names[used].tolist()), number[codes]


def rows_of(records: Sequence[Logged], names: Series) -> Table:
    """The rows of some records, in the order of their series and then of time.

    Returns:
        [rows] `series`, `timestamp_ms` (the round's end), `period_ms`, `weight` (thousandths), `offset` (of the record), `policy`,
        `share_*` and `quota_*` (units a second, NaN: unlimited), also as `*_milli`; [rows, 2] `refused`, whole units;
        [rows, 4], in the order of `AMOUNTS`, `totals` in whole units and `rates` in units a second;
        [rows, levels, 2] `refused_by`, whole units, or None.
    """
    records = sorted(records, key=lambda logged: logged.timestamp_ms)
    rows = RowRange.join(logged.record.rows for logged in records)
    record = np.repeat(np.arange(len(records)), [len(logged.record.rows) for logged in records])
    series = names.number(records, rows.usage, record)
    order = _by_series(series, len(names.known))
    series, record = series[order], record[order]
    made = [logged.record for logged in records]
    columns: Table = {
        "series": series,
        "timestamp_ms": np.array([logged.timestamp_ms for logged in records], float)[record],
        "period_ms": np.array([one.period_ns / NS_PER_MS for one in made])[record],
        "weight": np.array([one.weight for one in made], np.int64)[record],
        "offset": np.array([logged.offset for logged in records], np.int64)[record],
        "policy": rows.policies[order],
        "totals": np.concatenate([rows.admitted_total, rows.wanted_total], axis=1)[order],
        "rates": np.concatenate([rows.usage.admitted, rows.usage.wanted], axis=1)[order] / MILLI,
        "refused": rows.refused[order],
        "refused_by": rows.refused_by[order] if len(rows.refused_by) else None,
    }
    for place, of in enumerate(DIMENSIONS):
        for limit, rates in (("share", rows.share), ("quota", rows.quota)):
            milli = rates[order, place]
            columns[f"{limit}_{of}"] = np.where(milli == NO_RATE, np.nan, milli / MILLI)
            columns[f"{limit}_{of}_milli"] = milli
    return columns


def _by_series(series: Ints, count: int) -> Ints:
    """The places of the rows by series; stable, so that time stays in order."""
    return np.argsort(series.astype(np.int16) if count <= _SHORT_MAX else series, kind="stable")


def note_totals(rows: Table, names: Series, gaps: Mapping[int, Gap]) -> None:
    """Count what is missing in gaps in which totals grew, and keep the newest totals.

    Args:
        rows: as `rows_of` gives them.
        names: of their segment.
        gaps: by the offset of the record behind it.
    """
    series, totals = rows["series"], rows["totals"]
    is_last = np.append(series[1:] != series[:-1], np.ones(min(1, len(series)), bool))
    if gaps:
        before = np.roll(totals, 1, axis=0)
        is_first = np.roll(is_last, 1)
        before[is_first] = names.totals[series[is_first]]
        offsets = sorted(gaps)
        rounds = np.array([gaps[offset].rounds for offset in offsets])
        behind = np.flatnonzero(np.isin(rows["offset"], offsets))
        place = np.searchsorted(offsets, rows["offset"][behind])
        own = (rows["rates"] * rows["period_ms"][:, None] / 1000)[behind]
        extra = totals[behind] - before[behind] - own
        is_lost = is_loss(extra, own, rounds[place][:, None]).any(axis=1)
        # What a series had counted before its first row did not grow in this gap.
        is_lost &= (before[behind] >= 0).all(axis=1)
        for one in np.unique(place[is_lost]).tolist():
            gap = gaps[offsets[one]]
            gap.run.missing += gap.missing
    names.totals[series[is_last]] = totals[is_last]
