"""Brokers that tell of the same groups again and again, and what of them is hashed when.

A steady broker's reports have numbers in one table of names (`rgd.wire.name_dictionary`), and so have these.
Not covered: any such reports in any order (tests/property/test_usage_map_arena.py).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from tests.support.columns import advertised_hash
from tests.unit.core import values
from tests.unit.core.values import usage

COUNT = BOUNDS.exchange.hashed_rows_max + 44


def report(broker: str, *rows: UsageRow, **changes: Any) -> Report:
    """A report with numbers for names, of a table that was never seen before."""
    made = values.report(broker, *rows, **changes)
    names = NumberedNames(made.rows.groups, np.arange(len(rows)))
    return replace(made, rows=replace(made.rows, groups=names))


def many(wanted: float, *, first: int = 0, count: int = COUNT) -> list[UsageRow]:
    """Rows of so many groups, of which each wants something else."""
    return [usage(wanted + place, group=f"g{place}") for place in range(first, first + count)]


def again(before: Report, rows: list[UsageRow], **changes: object) -> Report:
    """Another report of the same groups, with numbers in the same table of their names."""
    told = UsageColumns.of(*rows)
    assert told.groups == tuple(before.rows.groups)
    same = replace(told, groups=before.rows.groups)
    return replace(before, rows=same, **changes)  # type: ignore[arg-type]


# What is hashed.


def test_a_broker_of_few_rows_or_none_is_always_hashed() -> None:
    usage_map = UsageMap()
    assert usage_map.is_hashed("b1")
    rows = many(1, count=BOUNDS.exchange.hashed_rows_max)
    usage_map.apply(report("b1", *rows))
    assert usage_map.is_hashed("b1")
    assert usage_map.hash_of("b1") == advertised_hash(rows)
    usage_map.remove("b1")
    assert usage_map.is_hashed("b1")
