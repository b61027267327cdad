"""The usage logs of the model's daemons: whole, in rolled segments, and the model's own numbers.

Not covered: what a report makes of them.
"""

from pathlib import Path

import numpy as np

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.core.exchange.messages import RoundRecord
from rgd.core.fluid.cluster import Settings
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import LogReader
from sim.model.logged import write_logs
from sim.model.workload import Workload, WorkloadName

GROUPS, BROKERS, ROUNDS, ROUND_S = 7, 3, 150, 60


def items_in(path: Path) -> list[RoundRecord | PolicyPart]:
    reader = LogReader()
    entries = [item.entry for item in read_entries(path) if isinstance(item, LogEntry)]
    return [item for entry in entries if (item := reader.read(entry)) is not None]


def test_the_logs_are_the_models_rounds(tmp_path: Path) -> None:
    workload = Workload(WorkloadName.NOISE, 1, BROKERS, BROKERS, ROUNDS, steps=(50,))
    count = write_logs(workload, GROUPS, Settings(), folder=tmp_path, round_s=ROUND_S)
    logs = sorted(tmp_path.iterdir())
    assert len(logs) == BROKERS
    admitted = np.zeros((ROUNDS, GROUPS))
    quota = np.zeros(GROUPS)
    for log in logs:
        segments = sorted(log.glob("*.log"))
        # An hour a segment.
        assert len(segments) == ROUNDS * ROUND_S // 3600 + 1
        assert all(isinstance(items_in(segment)[0], PolicyPart) for segment in segments)
        rounds = [item for item in items_in(log) if isinstance(item, RoundRecord)]
        assert [one.sequence for one in rounds] == list(range(1, ROUNDS + 1))
        totals = np.zeros(GROUPS, np.int64)
        for number, one in enumerate(rounds):
            places = [int(group.removeprefix("group-")) for group in one.rows.usage.groups]
            counted = one.rows.admitted_total[:, 0] - totals[places]
            assert (counted >= 0).all()
            admitted[number, places] += counted / ROUND_S
            totals[places] += counted
            quota[places] = one.rows.quota[:, 0] / 1000
        entries = [item.entry for item in read_entries(log) if isinstance(item, LogEntry)]
        assert [entry.index for entry in entries] == list(range(len(entries)))
        count -= len(entries)
    assert count == 0
    # Three daemons hold each quota together.
    assert (admitted <= 1.3 * quota).all()
    assert (admitted[5:50].mean(axis=0) > 0.25 * quota).all()
