"""A full disk cuts no entry in half, is told once, and logging goes on when there is room again.

On a small disk of its own where the machine lets a test mount one, and everywhere on a file that the
operating system lets grow no further.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.adapters.usagelog.conftest import Alarms
from tests.unit.adapters.usagelog.logs import (
    T0,
    TIMEOUT_S,
    MakeLog,
    payload_of,
    payloads_in,
    read,
    segments_in,
)
from tests.unit.adapters.usagelog.writing_process import FILE_BYTES_MAX, LIMITED_COUNT

ROOT = Path(__file__).parents[4]
SIZE_MAX = 4000
COUNT = 100


async def test_a_full_disk_loses_nothing_that_the_queue_can_hold(
    small_disk: Path, make_log: MakeLog, alarms: Alarms
) -> None:
    folder = small_disk / "log"
    log = make_log(folder, retry_ms=1, segment_bytes=50_000)
    await log.open()
    for number in range(COUNT):
        log.append(payload_of(number, SIZE_MAX), broker_timestamp_ms=T0)
    alarm = await alarms.next()
    assert "No space left" in (alarm.trouble or "")
    # What is there is whole, and is a part of it.
    assert 0 < len(payloads_in(folder)) < COUNT
    (small_disk / "ballast").unlink()
    assert (await alarms.next()).trouble is None
    await log.close()
    assert (log.appended, log.lost, log.synced_index) == (COUNT, 0, COUNT - 1)
    assert payloads_in(folder) == [payload_of(number, SIZE_MAX) for number in range(COUNT)]
    assert len(segments_in(folder)) > 2
    assert alarms.count == 2


def test_a_file_that_may_not_grow_is_a_full_disk_too(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    command = [sys.executable, "-m", "tests.unit.adapters.usagelog.writing_process"]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    stopped, over = map(json.loads, done.stdout.splitlines())
    assert "File too large" in stopped["trouble"]
    assert 0 < stopped["appended"] < LIMITED_COUNT
    assert 0 < stopped["segment_bytes"] <= FILE_BYTES_MAX
    assert (over["trouble"], over["appended"], over["lost"]) == (None, LIMITED_COUNT, 0)
    assert (stopped["further_alarms"], over["further_alarms"]) == (0, 0)
    assert payloads_in(folder) == [payload_of(number) for number in range(LIMITED_COUNT)]
    sequence = [item.entry.sequence_id for item in read(folder)[0]]
    assert sequence == list(range(LIMITED_COUNT))
