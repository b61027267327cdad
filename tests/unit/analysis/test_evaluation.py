"""Groups that are judged together have the figures that each has alone.

Not covered: the figures themselves (test_fairness, test_findings), Spark's sorting (tests/integration/spark).
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rgd.analysis.evaluation import Evaluator
from rgd.analysis.packets import whole_groups
from rgd.analysis.scenarios import parse
from tests.support.log_maker import LogMaker, Usage
from tests.unit.analysis.conftest import ReadLogs


def findings(table: pa.Table, *, pieces_max: int) -> dict[str, dict[str, Any]]:
    """What is found about each group."""
    scenarios = parse(["policy=steal,brokers=5"])
    evaluator = Evaluator(1000, 1000.0, scenarios)
    made = [one for of in whole_groups(table, pieces_max) for one in evaluator.of_pieces(of)[1]]
    by_name = {f"{one['group']} {one['dimension']}": one for one in made}
    assert len(by_name) == len(made)
    return by_name


@pytest.fixture
def pieces(tmp_path: Path, read_logs: ReadLogs) -> pa.Table:
    """Three brokers; group n is used by n % 3 + 1 of them, and everybody wants more than a fair part."""
    for broker in range(3):
        maker = LogMaker(tmp_path / str(broker), f"broker-{broker}")
        for number in range(20):
            wanted = 20 + 10 * broker + number
            # Some begin late, and some are idle in between.
            usages = [
                Usage(f"group-{n}", 10 * (broker + 1), wanted, quota=30 + n, quota_bytes=5000)
                for n in range(12)
                if broker <= n % 3 and (n < 6 or number > 12 or number % n == 0)
            ]
            maker.round(*usages)
        maker.close()
    return read_logs(tmp_path).pieces


@pytest.mark.parametrize("pieces_max", [1, 50, 200, 10_000])
@pytest.mark.slow
def test_how_the_pieces_come_changes_no_figure(pieces: pa.Table, pieces_max: int) -> None:
    alone: dict[str, dict[str, Any]] = {}
    for n in range(12):
        of_group = pieces.filter(pa.compute.equal(pieces["group"], f"group-{n}"))
        alone |= findings(of_group, pieces_max=10_000)

    assert findings(pieces, pieces_max=pieces_max) == alone
    assert len(alone) == 2 * 12
    # By hand: of a quota of 32 three brokers that want 20 and more are owed a third each.
    (first, *_) = alone["group-2 messages"]["brokers"]
    assert first["part"] == pytest.approx(32 / 3, abs=0.001)
