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

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rgd.analysis.chunks import AMOUNTS, DIMENSIONS, Floats, Table, numbered
from rgd.analysis.continuity import GAP_ROUNDS_MIN, is_loss
from rgd.analysis.pieces import MERGED, merge, split_at_borders
from rgd.core.exchange.columns import REFUSED_BY, Ints
from rgd.core.units import MILLI

Flags = NDArray[np.bool_]

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


def join(pieces: Any, window_ms: int) -> GroupWindows:
    """Join the pieces (a `pyarrow.Table` of `PIECES`) of one group and kind."""
    names, broker, series = _owners(pieces)
    window = pieces["window"].to_numpy().astype(np.int64)
    table = {name: pieces[name].to_numpy().astype(np.float64) for name in MERGED}
    series = _in_order_of_birth(broker, series, table["from_ms"])
    order = np.lexsort((table["from_ms"], window, series))
    table = {name: column[order] for name, column in table.items()}
    table, last = merge(table, series[order], window[order])
    place = order[last]
    broker, series, window = broker[place], series[place], window[place]
    gaps = _close_gaps(table, series, broker, GAP_WINDOWS_MAX * window_ms)
    numbers = np.unique(np.concatenate([window, _windows_of(gaps, window_ms)]))
    grid = _Grid(numbers, len(names), window_ms)
    policies, policy = numbered(pieces["policy"])
    row = np.searchsorted(numbers, window)
    policy = _latest(policy[place], row, np.zeros_like(row), (len(numbers), 1))[:, 0]
    seconds = _seconds(table, numbers, window_ms)
    covered = grid.add(row, broker, table["covered_ms"])
    is_begun = np.zeros(covered.shape, bool)
    is_begun[row[_first(series)], broker[_first(series)]] = True
    return GroupWindows(
        group=pieces["group"][0].as_py(),
        kind=pieces["kind"][0].as_py(),
        brokers=names,
        start_ms=numbers * window_ms,
        seconds=seconds,
        policy=tuple(np.array(policies, object)[policy].tolist()),
        covered=covered / 1000,
        weight=_latest(pieces["weight"].to_numpy()[place], row, broker, covered.shape),
        rates={
            of: _rates(
                of,
                table | {"quota_logged": pieces[f"quota_{of}_milli"].to_numpy()[place]},
                gaps,
                _Where(grid, row, broker, covered, seconds),
            )
            for of in DIMENSIONS
        },
        is_begun=is_begun,
        refused_by=_refused_by(pieces["refused_by"]),
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """Windows by brokers, to add things up in."""

    numbers: Ints
    brokers: int
    window_ms: int

    def add(self, row: Ints, broker: Ints, amount: Floats) -> Floats:
        """Sum amounts into their windows and brokers; (W, B)."""
        cells = row * self.brokers + broker
        size = len(self.numbers) * self.brokers
        return np.bincount(cells, amount, size).astype(np.float64).reshape(-1, self.brokers)

    def spread(self, gaps: Table, amount: str) -> Floats:
        """Spread what lies in gaps evenly over their time; (W, B)."""
        stretch, window, begin, end = split_at_borders(
            gaps["from_ms"], gaps["to_ms"], self.window_ms
        )
        row = np.searchsorted(self.numbers, window)
        return self.add(row, gaps["broker"][stretch], gaps[amount][stretch] * (end - begin))


@dataclass(frozen=True, slots=True)
class _Where:
    """Where each piece goes, and what the windows are."""

    grid: _Grid
    row: Ints
    broker: Ints
    covered: Floats
    seconds: Floats

    def add(self, amount: Floats) -> Floats:
        return self.grid.add(self.row, self.broker, amount)


def _refused_by(column: Any) -> tuple[int, ...]:
    """The sums of lists, most of which are empty."""
    levels = column.combine_chunks().flatten().to_numpy().reshape(-1, 2 * len(REFUSED_BY))
    return tuple(levels.sum(axis=0).tolist()) if len(levels) else ()


def _owners(pieces: Any) -> tuple[tuple[str, ...], Ints, Ints]:
    """The brokers in order of their names; each piece's broker and series as numbers."""
    names, broker = numbered(pieces["broker"])
    born, incarnation = numbered(pieces["incarnation"])
    return names, broker, broker * len(born) + incarnation


def _in_order_of_birth(broker: Ints, series: Ints, from_ms: Floats) -> Ints:
    """Renumber the series: each broker's together, its incarnations one after the other."""
    _, first, number = np.unique(series, return_index=True, return_inverse=True)
    born_ms = np.full(len(first), np.inf)
    np.minimum.at(born_ms, number, from_ms)
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((born_ms, broker[first]))] = np.arange(len(first))
    return rank[number]


def _close_gaps(table: Table, series: Ints, broker: Ints, longest_ms: float) -> Table:
    """Give each piece what its curve grew before it, or list that as a gap to spread, if it is not too long.

    `table` is in the order of series and window; its `before` columns are changed.
    """
    follows, continues = np.zeros(len(series), bool), np.zeros(len(series), bool)
    follows[1:] = broker[1:] == broker[:-1]
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
    columns["broker"] = broker[spread]
    return columns


def _first(series: Ints) -> Flags:
    """Whether a piece is the first of its series; they stand together."""
    return np.append([True], series[1:] != series[:-1])


def _windows_of(gaps: Table, window_ms: int) -> Ints:
    return split_at_borders(gaps["from_ms"], gaps["to_ms"], window_ms)[1]


def _seconds(table: Table, numbers: Ints, window_ms: int) -> Floats:
    """How much of each window lies between the group's first and last moment."""
    begin = np.maximum(numbers * window_ms, table["from_ms"].min())
    end = np.minimum((numbers + 1) * window_ms, table["to_ms"].max())
    return np.asarray(np.maximum(end - begin, 1.0) / 1000, np.float64)


def _rates(of: str, table: Table, gaps: Table, where: _Where) -> Rates:
    """One dimension's rates; an amount is a difference of totals plus what was spread."""
    rate = {}
    recovered = where.grid.spread(gaps, f"admitted_{of}")
    for amount in ("admitted", "wanted"):
        name = f"{amount}_{of}"
        grown = np.maximum(0.0, table[f"{name}_after"] - table[f"{name}_before"])
        counted = where.add(grown) + where.grid.spread(gaps, name)
        rate[amount] = counted / where.seconds[:, None]
    share_ms, share_units = (
        where.add(table[f"share_{of}_{what}"]) for what in ("limited_ms", "units")
    )
    quota_ms, quota_units = (
        where.add(table[f"quota_{of}_{what}"]).sum(axis=1) for what in ("limited_ms", "units")
    )
    covered = where.covered.sum(axis=1)
    return Rates(
        admitted=rate["admitted"],
        wanted=np.maximum(rate["wanted"], rate["admitted"]),
        refused=where.add(table[f"refused_{of}"]) / where.seconds[:, None],
        share=_mean(share_units, share_ms, where.covered),
        quota=_carried(_in_thousandths(_mean(quota_units, quota_ms, covered)), covered),
        quota_logged=_latest(table["quota_logged"], where.row, where.broker, where.covered.shape),
        quota_max=_largest(where.row, table[f"quota_{of}_max"], covered),
        recovered=recovered.sum(axis=1) / where.seconds,
    )


def _mean(units: Floats, limited_ms: Floats, covered_ms: Floats) -> Floats:
    """The mean limit over the time it was limited; NaN where that is less than half."""
    is_limited = (limited_ms > 0) & (limited_ms >= covered_ms / 2)
    return np.where(is_limited, units / np.where(is_limited, limited_ms, 1.0), np.nan)


def _in_thousandths(rates: Floats) -> Floats:
    """Rates are whole thousandths, so a mean of equal ones is shown as that rate: 600, not 599.99..."""
    return np.rint(rates * MILLI) / MILLI


def _carried(quota: Floats, covered: Floats) -> Floats:
    """A window without a record keeps the quota of the one before."""
    places = np.where(covered > 0, np.arange(len(quota)), 0)
    carried: Floats = quota[np.maximum.accumulate(places)]
    return carried


def _largest(row: Ints, quota: Floats, covered: Floats) -> Floats:
    """The largest quota logged in a window or the one before it."""
    largest = np.zeros(len(covered))
    np.maximum.at(largest, row, quota)
    largest = _carried(largest, covered)
    before = np.append(largest[:1], largest[:-1])
    return np.maximum(largest, before)


def _latest(values: Ints, row: Ints, broker: Ints, shape: tuple[int, ...]) -> Ints:
    """What each broker logged last in each window; without a record the nearest earlier value holds.

    Before its first record a broker has the value of that; `values` is latest last.
    """
    latest, is_known = np.zeros(shape, np.int64), np.zeros(shape, bool)
    latest[row, broker] = values
    is_known[row, broker] = True
    if is_known.all():
        return latest
    windows = np.arange(shape[0])[:, None]
    known = np.maximum.accumulate(np.where(is_known, windows, -1), axis=0)
    first = np.argmax(is_known, axis=0)
    answer: Ints = np.take_along_axis(latest, np.where(known < 0, first, known), axis=0)
    return answer
