"""Joins the pieces of all brokers of one group and kind into windows of rates.

Law: nothing that a counter counted is lost or doubled. What a curve grew between two of its pieces
is spread evenly over the time between them if records are missing there (it is then also reported as
`recovered`), and belongs to the later piece if not: chunks and segments end in the middle of things.
What a gap of more than `GAP_WINDOWS_MAX` windows counted is left out. What a broker had counted before its first piece is before the log and is left out.

A broker without a piece in a window admitted and wanted nothing in it. Windows that no broker has a
record of are left out. The quota of a window is the mean of what its records say, by time; it is
unlimited (NaN here, null outside) where it was so for more than half of that time.
What is fair is `rgd.analysis.fairness`'s business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rgd.analysis.continuity import GAP_ROUNDS_MIN, is_loss
from rgd.analysis.pieces import MERGED, QUOTAS, merge, split_at_borders, starts_of
from rgd.analysis.row_columns import AMOUNTS, DIMENSIONS, Floats, Table, numbered
from rgd.core.exchange.columns import REFUSED_BY, Ints
from rgd.core.units import MILLI

Flags = NDArray[np.bool_]
ArraysT = TypeVar("ArraysT")
#: What `GroupWindows` has once.
WHOLE: Final = frozenset(("group", "kind", "brokers", "rates", "refused_by"))

#: Counts of a longer gap are left out, because a gap costs as much memory as a log of its length.
GAP_WINDOWS_MAX: Final = 3600


@dataclass(frozen=True, slots=True)
class Rates:
    """One dimension of a group's windows; W windows, B brokers, units per second, NaN for none."""

    #: (W, B).
    admitted: Floats
    wanted: Floats
    refused: Floats
    #: (W, B); NaN: unlimited, or the broker has no record.
    share: Floats
    #: (W,); NaN: unlimited.
    quota: Floats
    #: (W, B); the quota that each broker logged last, thousandths, `NO_RATE` where unlimited. These are
    #: exact; `quota` is a mean and must not be compared for equality.
    quota_logged: Ints
    #: (W,); the largest quota that any broker logged in the window or the one before; inf: unlimited.
    quota_max: Floats
    #: (W,); how much of `admitted` is known from the totals only.
    recovered: Floats

    @property
    def is_used(self) -> bool:
        """Whether there is anything to judge: a limit, or anything asked."""
        return bool(np.isfinite(self.quota).any() or (self.wanted > 0).any())


@dataclass(frozen=True, slots=True)
class GroupWindows:
    """One group and kind, all brokers, window by window."""

    group: str
    kind: str
    brokers: tuple[str, ...]
    #: (W,); ms since 1970, and how much of the window the log covers.
    start_ms: Ints
    seconds: Floats
    #: (W,)
    policy: tuple[str, ...]
    #: (W, B); of how much of the window the broker has a record of the group, in seconds.
    covered: Floats
    #: (W, B); each broker's weight in max-min, thousandths.
    weight: Ints
    rates: dict[str, Rates]
    #: (W, B); whether an incarnation of the broker began to use the group in the window.
    is_begun: Flags
    #: Whole units by the level that refused them, as `PIECES` has them; none: nothing, or unknown.
    refused_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Groups of the same brokers, one after the other in the same arrays: a call costs as much as some hundred windows."""

    #: All of them as if they were one, which has no name.
    windows: GroupWindows
    #: Each alone.
    groups: tuple[GroupWindows, ...]

    @classmethod
    def of(
        cls, windows: GroupWindows, begins: Sequence[int], names: Sequence[tuple[Any, ...]]
    ) -> "Joined":
        """Groups by where their windows begin and end, and their names, kinds and refusals."""
        groups = []
        for both, (group, kind, refused_by) in zip(pairwise(begins), names, strict=True):
            rates = {of: sliced(one, slice(*both)) for of, one in windows.rates.items()}
            own = sliced(windows, slice(*both))
            groups.append(replace(own, group=group, kind=kind, rates=rates, refused_by=refused_by))
        return cls(windows, tuple(groups))

    @classmethod
    def alone(cls, windows: GroupWindows) -> "Joined":
        """One group."""
        return cls(windows, (windows,))

    @property
    def rows(self) -> list[slice]:
        """Where the windows of each group are."""
        ends = np.cumsum([0, *(len(one.start_ms) for one in self.groups)]).tolist()
        return [slice(*both) for both in pairwise(ends)]


def join(pieces: Any, window_ms: int) -> list[Joined]:
    """Join the pieces (a `pyarrow.Table` of `PIECES`) of some groups and kinds."""
    table: Table = {
        name: pieces[name].to_numpy() for name in (*MERGED, *QUOTAS, "window", "weight")
    }
    groups, group = numbered(pieces["group"])
    kinds, kind = numbered(pieces["kind"])
    numbers, table["owner"] = np.unique(group * len(kinds) + kind, return_inverse=True)
    names = [(groups[one // len(kinds)], kinds[one % len(kinds)]) for one in numbers.tolist()]
    brokers, table["broker"] = numbered(pieces["broker"])
    _, table["incarnation"] = numbered(pieces["incarnation"])
    policies, table["policy"] = numbered(pieces["policy"])
    refused_by = _refused_by(pieces["refused_by"], table["owner"], len(names))
    is_there = np.zeros((len(names), len(brokers)), bool)
    is_there[table["owner"], table["broker"]] = True
    sets, set_of = np.unique(is_there, axis=0, return_inverse=True)
    number = set_of[table["owner"]]
    order = np.argsort(number, kind="stable")
    joined = []
    for which, mine in enumerate(np.split(order, np.cumsum(np.bincount(number))[:-1])):
        is_its, owners = sets[which], np.flatnonzero(set_of == which)
        some = {name: column[mine] for name, column in table.items()}
        some["owner"] = np.searchsorted(owners, some["owner"])
        some["broker"] = (np.cumsum(is_its) - 1)[some["broker"]]
        of_set = tuple(np.array(brokers, object)[is_its].tolist())
        windows, begins = _joined(some, of_set, policies, window_ms)
        joined.append(
            Joined.of(windows, begins, [(*names[one], refused_by[one]) for one in owners])
        )
    return joined


def _joined(
    table: Table, brokers: tuple[str, ...], policies: Sequence[str], window_ms: int
) -> tuple[GroupWindows, list[int]]:
    """The windows of groups of the same brokers, and where those of each begin and end."""
    line = table["owner"] * len(brokers) + table["broker"]
    series = line * (table["incarnation"].max() + 1) + table["incarnation"]
    series = _in_order_of_birth(line, series, table["from_ms"])
    order = np.lexsort((table["from_ms"], table["window"], series))
    pieces, last = merge(
        {name: table[name][order] for name in MERGED}, series[order], table["window"][order]
    )
    latest = {
        name: table[name][order[last]] for name in (*QUOTAS, "weight", "policy", "window", "owner")
    }
    line, series, owner = line[order[last]], series[order[last]], latest["owner"]
    gaps = _close_gaps(pieces, series, line, GAP_WINDOWS_MAX * window_ms)
    grid = _Grid.of(line, latest["window"], gaps, len(brokers), window_ms)
    # Pieces are in the order of groups.
    begins, of_row = starts_of(owner), np.searchsorted(np.unique(grid.begin), grid.begin)
    first_ms = np.minimum.reduceat(pieces["from_ms"], begins)[of_row]
    last_ms = np.maximum.reduceat(pieces["to_ms"], begins)[of_row]
    start_ms = grid.numbers * window_ms
    end_ms = np.minimum(start_ms + window_ms, last_ms)
    seconds = np.maximum(end_ms - np.maximum(start_ms, first_ms), 1.0) / 1000
    is_begun = np.zeros((len(start_ms), len(brokers)), bool)
    is_begun.reshape(-1)[grid.cells[starts_of(series)]] = True
    policy = _latest(latest["policy"], grid.row, grid.begin, 1)[:, 0]
    windows = GroupWindows(
        group="",
        kind="",
        brokers=brokers,
        start_ms=start_ms,
        seconds=seconds,
        policy=tuple(np.array(policies, object)[policy].tolist()),
        covered=grid.add(pieces["covered_ms"]) / 1000,
        weight=grid.latest(latest["weight"]),
        rates={of: _rates(of, pieces | latest, gaps, grid, seconds) for of in DIMENSIONS},
        is_begun=is_begun,
    )
    return windows, [*np.unique(grid.begin).tolist(), len(grid.numbers)]


def sliced(arrays: ArraysT, rows: slice) -> ArraysT:
    """Some windows of a dataclass; what is not by windows stays."""
    whole: Any = arrays
    kept = (field.name for field in fields(whole) if field.name not in WHOLE)
    part: ArraysT = replace(whole, **{name: getattr(whole, name)[rows] for name in kept})
    return part


@dataclass(frozen=True, slots=True)
class _Grid:
    """Windows by brokers, to add things up in; those of a group stand together."""

    #: (W,); of each window its number, and the first window of its group.
    numbers: Ints
    begin: Ints
    brokers: int
    #: Where each piece goes, and each window's part of a gap: which gap, where, and how much of it.
    cells: Ints
    gap: Ints
    gap_cells: Ints
    gap_part: Floats

    @classmethod
    def of(cls, line: Ints, window: Ints, gaps: Table, brokers: int, window_ms: int) -> "_Grid":
        """The windows that have pieces or are in gaps; a line is a group and a broker."""
        gap, between, begin, end = split_at_borders(gaps["from_ms"], gaps["to_ms"], window_ms)
        count, line = len(line), np.concatenate([line, gaps["line"][gap]])
        window = np.concatenate([window, between])
        span = int(window.max()) + 1
        codes = line // brokers * span + window
        known = np.sort(codes)
        known = known[starts_of(known)]
        cells = np.searchsorted(known, codes) * brokers + line % brokers
        first = np.searchsorted(known // span, known // span)
        return cls(known % span, first, brokers, cells[:count], gap, cells[count:], end - begin)

    @property
    def row(self) -> Ints:
        """The window of each piece."""
        return self.cells // self.brokers

    def add(self, amount: Floats) -> Floats:
        """Sum the pieces' amounts in their windows and brokers; (W, B)."""
        return self._sums(self.cells, amount)

    def spread(self, amount: Floats) -> Floats:
        """Spread the gaps' amounts evenly over their time; (W, B)."""
        return self._sums(self.gap_cells, amount[self.gap] * self.gap_part)

    def latest(self, values: Ints) -> Ints:
        """What each broker logged last in each window; (W, B)."""
        return _latest(values, self.cells, self.begin, self.brokers)

    def _sums(self, cells: Ints, amount: Floats) -> Floats:
        size = len(self.numbers) * self.brokers
        return np.bincount(cells, amount, size).astype(np.float64).reshape(-1, self.brokers)


def _refused_by(column: Any, owner: Ints, owners: int) -> list[tuple[int, ...]]:
    """Of each group the sums of its lists; most lists are empty."""
    column = column.combine_chunks()
    levels = column.flatten().to_numpy().reshape(-1, 2 * len(REFUSED_BY))
    sums = np.zeros((owners, levels.shape[1]), np.int64)
    if len(levels):
        has_levels = column.value_lengths().fill_null(0).to_numpy() > 0
        np.add.at(sums, owner[has_levels], levels)
    return [tuple(one) for one in sums.tolist()]


def _in_order_of_birth(line: Ints, series: Ints, from_ms: Floats) -> Ints:
    """Renumber the series: each broker's of a group together, its incarnations one after the other."""
    _, first, number = np.unique(series, return_index=True, return_inverse=True)
    born_ms = np.full(len(first), np.inf)
    np.minimum.at(born_ms, number, from_ms)
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((born_ms, line[first]))] = np.arange(len(first))
    return rank[number]


def _close_gaps(table: Table, series: Ints, line: Ints, longest_ms: float) -> Table:
    """Give each piece what its curve grew before it, or list that as a gap to spread, if it is not too long.

    `table` is in the order of series and window; its `before` columns are changed.
    """
    follows, continues = np.zeros(len(series), bool), np.zeros(len(series), bool)
    follows[1:] = line[1:] == line[:-1]
    continues[1:] = series[1:] == series[:-1]
    gap_ms = np.where(follows, table["from_ms"] - np.roll(table["to_ms"], 1), 0.0)
    is_gap = gap_ms >= GAP_ROUNDS_MIN * table["period_ms"]
    covered = np.maximum(table["to_ms"] - table["from_ms"], 1.0)
    lost = np.zeros(len(series), bool)
    extra = {}
    for amount in AMOUNTS:
        before, after = table[f"{amount}_before"], table[f"{amount}_after"]
        # A broker that has started again counts from 0, and did so after its last piece.
        known = np.where(continues, np.roll(after, 1), 0.0)
        extra[amount] = before - known
        lost |= is_loss(extra[amount], after - before, gap_ms / covered)
    spread = lost & is_gap
    for amount in AMOUNTS:
        # What a broker had counted before its first piece was before the log begins.
        table[f"{amount}_before"] -= np.where(follows & ~spread, extra[amount], 0.0)
    spread &= gap_ms <= longest_ms
    columns: Table = {amount: np.maximum(0.0, extra[amount])[spread] for amount in AMOUNTS}
    columns["to_ms"] = table["from_ms"][spread]
    columns["from_ms"] = columns["to_ms"] - gap_ms[spread]
    columns["line"] = line[spread]
    return columns


def _rates(of: str, table: Table, gaps: Table, grid: _Grid, seconds: Floats) -> Rates:
    """One dimension's rates; an amount is a difference of totals plus what was spread."""
    rate = {}
    recovered = grid.spread(gaps[f"admitted_{of}"])
    for amount in ("admitted", "wanted"):
        name = f"{amount}_{of}"
        grown = np.maximum(0.0, table[f"{name}_after"] - table[f"{name}_before"])
        rate[amount] = (grid.add(grown) + grid.spread(gaps[name])) / seconds[:, None]
    share_ms, share_units, quota_ms, quota_units = (
        grid.add(table[f"{limit}_{of}_{what}"])
        for limit in ("share", "quota")
        for what in ("limited_ms", "units")
    )
    covered = grid.add(table["covered_ms"])
    quota = _mean(quota_units.sum(axis=1), quota_ms.sum(axis=1), covered.sum(axis=1))
    is_covered = covered.sum(axis=1) > 0
    return Rates(
        admitted=rate["admitted"],
        wanted=np.maximum(rate["wanted"], rate["admitted"]),
        refused=grid.add(table[f"refused_{of}"]) / seconds[:, None],
        share=_mean(share_units, share_ms, covered),
        quota=_carried(_in_thousandths(quota), is_covered, grid.begin),
        quota_logged=grid.latest(table[f"quota_{of}_milli"]),
        quota_max=_largest(grid.row, table[f"quota_{of}_max"], is_covered, grid.begin),
        recovered=recovered.sum(axis=1) / seconds,
    )


def _mean(units: Floats, limited_ms: Floats, covered_ms: Floats) -> Floats:
    """The mean limit over the time it was limited; NaN where that is less than half."""
    is_limited = (limited_ms > 0) & (limited_ms >= covered_ms / 2)
    return np.where(is_limited, units / np.where(is_limited, limited_ms, 1.0), np.nan)


def _in_thousandths(rates: Floats) -> Floats:
    """Rates are whole thousandths, so a mean of equal ones is shown as that rate: 600, not 599.99..."""
    return np.rint(rates * MILLI) / MILLI


def _carried(quota: Floats, is_covered: Flags, begin: Ints) -> Floats:
    """A window without a record keeps the quota of the one before."""
    places = np.where(is_covered, np.arange(len(quota)), begin)
    carried: Floats = quota[np.maximum.accumulate(places)]
    return carried


def _largest(row: Ints, quota: Floats, is_covered: Flags, begin: Ints) -> Floats:
    """The largest quota logged in a window or the one before it."""
    largest = np.zeros(len(begin))
    np.maximum.at(largest, row, quota)
    largest = _carried(largest, is_covered, begin)
    before = largest[np.maximum(np.arange(len(begin)) - 1, begin)]
    return np.maximum(largest, before)


def _latest(values: Ints, cells: Ints, begin: Ints, brokers: int) -> Ints:
    """What was logged last in each window; (W, B). Without a record the nearest earlier value holds.

    Before its first record of the group a broker has the value of that; `values` is latest last.
    """
    shape = len(begin), brokers
    latest, is_known = np.zeros(shape, np.int64), np.zeros(shape, bool)
    latest.reshape(-1)[cells] = values
    is_known.reshape(-1)[cells] = True
    if is_known.all():
        return latest
    windows = np.arange(len(begin))[:, None]
    known = np.maximum.accumulate(np.where(is_known, windows, -1), axis=0)
    behind = np.where(is_known, windows, len(begin))[::-1]
    first = np.minimum.accumulate(behind, axis=0)[::-1]
    at = np.where(known < begin[:, None], first, known)
    answer: Ints = np.take_along_axis(latest, at, axis=0)
    return answer
