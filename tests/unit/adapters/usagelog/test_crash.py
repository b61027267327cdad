"""A writing process that is killed loses nothing that it flushed, and the next one goes on.

SIGKILL at whatever moment it comes, several times over one log. Not covered: loss of power, which also
takes what was not synced (its shapes are in test_recovery.py).
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.adapters.usagelog.logs import MakeLog, payload_of, payloads_in, segments_in
from tests.unit.adapters.usagelog.writing_process import SIZE_MAX

ROOT = Path(__file__).parents[4]


@contextmanager
def writing(folder: Path, first: int) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.unit.adapters.usagelog.writing_process"]
    with subprocess.Popen(
        [*command, "endless", str(folder), str(first)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def flushed(process: subprocess.Popen[str]) -> int:
    """Read the process's next line."""
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == "flushed"
    return int(number)


@pytest.mark.slow
async def test_a_killed_writer_loses_nothing_that_it_flushed(
    tmp_path: Path, make_log: MakeLog
) -> None:
    folder = tmp_path / "log"
    count = 0
    for lines in (1, 3, 20, 2):
        last = -1
        with writing(folder, count) as process:
            for _ in range(lines):
                last = flushed(process)
        payloads = payloads_in(folder)
        assert payloads == [payload_of(number, SIZE_MAX) for number in range(len(payloads))]
        assert len(payloads) > last
        log = make_log(folder)
        await log.open()
        assert log.damaged == 0
        count = len(payloads_in(folder))
        assert count == len(payloads)
        log.append(payload_of(count, SIZE_MAX), broker_timestamp_ms=0)
        await log.close()
        count += 1
        assert log.synced_index == count - 1
    assert len(segments_in(folder)) > 1
