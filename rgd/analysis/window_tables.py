"""Judged windows as an Arrow table (`schema.WINDOWS`), and what is drawn of it.

Law: `read` returns what `write` was given. A broker that is not listed in a window (it has neither a record nor demand
in it) admitted and wanted nothing, and has no share.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.fairness import Fairness
from rgd.analysis.row_columns import Floats
from rgd.analysis.schema import WINDOWS, arrow
from rgd.analysis.windows import GroupWindows, Joined, Rates
from rgd.core.exchange.columns import Ints

#: What `read` needs of a table, as Parquet names it.
DRAWN: Final = (
    *("group", "kind", "dimension", "start_ms", "seconds"),
    *("quota", "jain", "lowest_ratio", "recovered"),
    *(f"brokers.list.element.{name}" for name in ("broker", "admitted", "wanted", "share", "part")),
)


@dataclass(frozen=True, slots=True)
class Plotted:
    """What is drawn of one group, kind and dimension; W windows, B brokers, NaN for none."""

    dimension: str
    brokers: tuple[str, ...]
    #: (W,); ms since 1970, and how much of the window the log covers.
    start_ms: Ints
    seconds: Floats
    #: (W, B); units per second.
    admitted: Floats
    wanted: Floats
    share: Floats
    part: Floats
    #: (W,)
    quota: Floats
    jain: Floats
    lowest: Floats
    recovered: Floats


def write(joined: Joined, dimension: str, fairness: Fairness) -> Any:
    """Make a `pyarrow.Table` of one dimension of some groups, a row a window."""
    import pyarrow as pa

    windows = joined.windows
    rates = windows.rates[dimension]
    size = len(windows.start_ms)
    group = np.repeat(np.arange(len(joined.groups)), [len(one.start_ms) for one in joined.groups])
    lowest = np.where(np.isnan(fairness.ratio), np.inf, fairness.ratio).argmin(axis=1)
    columns = {
        "group": pa.array([one.group for one in joined.groups]).take(pa.array(group)),
        "kind": pa.array([one.kind for one in joined.groups]).take(pa.array(group)),
        "dimension": pa.repeat(dimension, size),
        "start_ms": pa.array(windows.start_ms),
        "seconds": pa.array(windows.seconds),
        "policy": pa.array(windows.policy),
        "admitted": pa.array(rates.admitted.sum(axis=1)),
        "wanted": pa.array(rates.wanted.sum(axis=1)),
        "refused": pa.array(rates.refused.sum(axis=1)),
        "recovered": pa.array(rates.recovered),
        "quota": _nullable(rates.quota),
        "quota_max": _nullable(np.where(np.isinf(rates.quota_max), np.nan, rates.quota_max)),
        "utilisation": _nullable(fairness.utilisation),
        "overshoot": _nullable(fairness.overshoot),
        "unmet": pa.array(fairness.unmet),
        "unused": pa.array(fairness.unused),
        "jain": _nullable(fairness.jain),
        "lowest_ratio": _nullable(fairness.lowest),
        "lowest_broker": pa.array(windows.brokers, pa.string()).take(
            pa.array(lowest, mask=np.isnan(fairness.lowest))
        ),
        "brokers": _brokers(windows, rates, fairness),
    }
    return pa.table([columns[name] for name in WINDOWS], schema=arrow(WINDOWS))


def read(table: Any) -> Plotted:
    """Read the table of one group, kind and dimension; rows in any order."""
    table = table.sort_by("start_ms")
    listed = table["brokers"].combine_chunks()
    inner = listed.flatten()
    names, broker = np.unique(
        np.array(inner.field("broker").to_pylist(), object), return_inverse=True
    )
    row = np.repeat(np.arange(len(listed)), listed.value_lengths().to_numpy())

    def grid(name: str, blank: float = 0.0) -> Floats:
        filled = np.full((len(listed), len(names)), blank)
        filled[row, broker] = inner.field(name).to_numpy(zero_copy_only=False)
        return filled

    return Plotted(
        dimension=table["dimension"][0].as_py(),
        brokers=tuple(names),
        start_ms=table["start_ms"].to_numpy().astype(np.int64),
        seconds=_floats(table["seconds"]),
        admitted=grid("admitted"),
        wanted=grid("wanted"),
        share=grid("share", np.nan),
        part=grid("part"),
        quota=_floats(table["quota"]),
        jain=_floats(table["jain"]),
        lowest=_floats(table["lowest_ratio"]),
        recovered=_floats(table["recovered"]),
    )


def _brokers(windows: GroupWindows, rates: Rates, fairness: Fairness) -> Any:
    """The brokers of each window that have a record or demand in it."""
    import pyarrow as pa

    listed = (windows.covered > 0) | (rates.wanted > 0)
    row, broker = np.nonzero(listed)
    fields = arrow(WINDOWS).field("brokers").type.value_type
    inner = pa.StructArray.from_arrays(
        [
            pa.array(windows.brokers, pa.string()).take(pa.array(broker)),
            pa.array(rates.admitted[row, broker]),
            pa.array(rates.wanted[row, broker]),
            pa.array(rates.refused[row, broker]),
            _nullable(rates.share[row, broker]),
            pa.array(fairness.part[row, broker]),
            _nullable(fairness.ratio[row, broker]),
            pa.array(windows.weight[row, broker]),
        ],
        fields=list(fields),
    )
    ends = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), inner)


def _nullable(numbers: Floats) -> Any:
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))


def _floats(column: Any) -> Floats:
    """A column as floats, NaN where it is null."""
    numbers: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers
