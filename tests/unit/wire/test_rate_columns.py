"""Rates as codes: small, and refused with a reason where they are not codes of rates.

Not covered: any rows there and back (tests/property/test_wire_round_trips.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire import rate_columns
from rgd.wire.errors import Reason
from rgd.wire.usage_pb2 import UsageColumns as ColumnsProto
from tests.support.cases import cases, refused

ROWS = UsageColumns.of(
    UsageRow("gold", Kind.PUBLISH, 3, Pair(40_000, 5_000_000), Pair(60_000, 7_000_000)),
    UsageRow("gold", Kind.DISPATCH, 1, Pair(1_500, 77), Pair(1_500, 77)),
    UsageRow("silver", Kind.PUBLISH, 2, Pair(1_000_000, 0), Pair(3_000_000, 0)),
    UsageRow("tin", Kind.PUBLISH, 0, Pair(9_000, 9_000), Pair(0, 0)),
)


def written(rows: UsageColumns = ROWS) -> ColumnsProto:
    proto = ColumnsProto()
    rate_columns.write(rows, proto)
    return proto


@pytest.mark.parametrize("column", ["admitted", "wanted"])
def test_rows_of_another_precision_are_not_written(column: str) -> None:
    off = {column: np.array([[1_001, 1]] * len(ROWS))}
    proto = ColumnsProto()
    rows = replace(ROWS, **off)  # type: ignore[arg-type]  # columns of numbers
    with refused(Reason.BAD_NUMBER):
        rate_columns.write(rows, proto)
    assert proto == ColumnsProto()


@cases(
    "changes, reason",
    {
        "high-short": ({"admitted_high": b"\0" * 7}, Reason.BAD_COLUMNS),
        "low-long": ({"admitted_low": b"\0" * 9}, Reason.BAD_COLUMNS),
        "low-missing": ({"admitted_low": b""}, Reason.BAD_COLUMNS),
        "no-code": ({"admitted_high": b"\xff" * 8}, Reason.BAD_NUMBER),
        "unmet-long": ({"unmet_high": b"\1" * 9}, Reason.BAD_COLUMNS),
        "unmet-low-short": ({"unmet_low": b"\1" * 2}, Reason.BAD_COLUMNS),
        "beyond": ({"unmet_high": b"\xff" * 8, "unmet_low": b"\xfe" * 8}, Reason.BAD_NUMBER),
        "below": ({"unmet_high": b"\xff" * 8, "unmet_low": b"\0" * 8}, Reason.BAD_NUMBER),
    },
)
def test_what_is_no_code_is_refused(changes: dict[str, bytes], reason: Reason) -> None:
    proto = written()
    for name, data in changes.items():
        setattr(proto, name, data)
    with refused(reason):
        rate_columns.read(proto, len(ROWS))
