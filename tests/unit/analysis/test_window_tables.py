"""Windows survive the way into Parquet and back.

Not covered: Spark's own writing of it (tests/integration/spark).
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rgd.analysis.schema import WINDOWS, arrow
from rgd.analysis.window_tables import read, write
from rgd.analysis.windows import Joined
from tests.support.log_maker import Usage, log_of
from tests.unit.analysis.conftest import ReadLogs


@pytest.mark.parametrize("quota", [100.0, None])
def test_what_is_read_is_what_was_written(
    tmp_path: Path, read_logs: ReadLogs, quota: float | None
) -> None:
    for broker, rounds in (("broker-1", 5), ("broker-2", 3)):
        log_of(tmp_path, broker, (rounds, Usage("gold", 40, 80, quota=quota, share=quota)))
    logs = read_logs(tmp_path)
    windows, fairness = logs.windows(), logs.fairness()

    table = write(Joined.alone(windows), "messages", fairness)
    assert table.schema == arrow(WINDOWS)
    pq.write_table(table, tmp_path / "windows.parquet")
    plotted = read(pq.read_table(tmp_path / "windows.parquet"))

    assert (plotted.dimension, plotted.brokers) == ("messages", windows.brokers)
    for name in set(plotted.__slots__) - {"dimension", "brokers"}:
        sources = (windows, windows.rates["messages"], fairness)
        (written,) = (getattr(source, name) for source in sources if hasattr(source, name))
        np.testing.assert_array_equal(getattr(plotted, name), written)


def test_a_row_has_the_group_and_its_brokers(tmp_path: Path, read_logs: ReadLogs) -> None:
    for broker, admitted in (("broker-1", 70), ("broker-2", 30)):
        log_of(tmp_path, broker, (1, Usage("gold", admitted, 70, quota=100, share=50)))
    logs = read_logs(tmp_path)

    (row,) = write(Joined.alone(logs.windows()), "messages", logs.fairness()).to_pylist()

    assert (row["admitted"], row["wanted"], row["quota"]) == (100.0, 140.0, 100.0)
    assert (row["lowest_ratio"], row["lowest_broker"]) == (0.6, "broker-2")
    assert row["brokers"][1] == {
        "broker": "broker-2",
        "admitted": 30.0,
        "wanted": 70.0,
        "refused": 40.0,
        "share": 50.0,
        "part": 50.0,
        "ratio": 0.6,
        "weight": 1000,
    }
