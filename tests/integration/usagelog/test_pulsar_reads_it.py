"""Apache Pulsar's own `Commands` reads every entry of a log that rgd wrote, compressed payloads too.

Not covered: entries that Pulsar wrote (tests/data/vectors), what is in a payload.
"""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.clock import SystemClock
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.usagelog import Interceptor
from rgd.wire.frame import plain_payload
from tests.support import components
from tests.support.columns import round_of
from tests.support.pulsar_standalone import ensure_distribution

pytestmark = pytest.mark.pulsar

PROGRAM = Path(__file__).with_name("ReadLog.java")
TIMEOUT_S = 120
T0 = 1_795_234_300_000


def growing(sequence: int, groups: int) -> RoundRecord:
    """A round of some groups; of few a payload is too short to be compressed."""
    amounts = np.arange(2 * groups, dtype=np.int64).reshape(groups, 2) * sequence
    return round_of(sequence, [f"group-{place:04}" for place in range(groups)], amounts)


async def write_log(folder: Path, interceptors: frozenset[Interceptor]) -> None:
    settings = UsageLogSettings(segment_bytes=32_000, interceptors=interceptors)
    log = SegmentedLog(
        folder,
        settings,
        broker="broker-1",
        clock=SystemClock().now,
        on_alarm=lambda alarm: pytest.fail(str(alarm)),
    )
    await log.open()
    snapshot = PolicySnapshot({f"g{place}": Group(f"g{place}") for place in range(50)})
    log.append(PoliciesInForce(Sender("b1", 1), snapshot, 7), broker_timestamp_ms=T0 + 1)
    for sequence in range(1, 200):
        record = growing(sequence, 1 if sequence % 2 else 300)
        log.append(record, broker_timestamp_ms=T0 + sequence)
    await log.close()
    assert log.lost == 0


def read_by_pulsar(folder: Path) -> list[dict[str, Any]]:
    jars = ensure_distribution() / "lib" / "*"
    segments = map(str, sorted(folder.glob("*.log")))
    command = [str(components.java()), "-cp", str(jars), str(PROGRAM), *segments]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    "interceptors", [frozenset(Interceptor), frozenset()], ids=["both", "none"]
)
async def test_pulsar_reads_every_entry(
    tmp_path: Path, interceptors: frozenset[Interceptor]
) -> None:
    await write_log(tmp_path, interceptors)
    entries = [item.entry for item in read_entries(tmp_path) if isinstance(item, LogEntry)]
    found = read_by_pulsar(tmp_path)
    assert found == [
        {
            "index": entry.index,
            "broker_timestamp": entry.broker_timestamp,
            "checksum": True,
            "producer": entry.producer_name,
            "sequence_id": entry.sequence_id,
            "publish_time": entry.publish_time,
            "compression": "ZSTD" if entry.unknown else "NONE",
            "rgd": "2",
            "sha256": hashlib.sha256(plain_payload(entry)).hexdigest(),
        }
        for entry in entries
    ]
    assert {one["compression"] for one in found} == {"ZSTD", "NONE"}
    assert len(found) > 200
