"""A process that writes a log until its disk is full; run by test_full_disk.py.

    python -m tests.unit.adapters.usagelog.writing_process FOLDER

It may write no file larger than `FILE_BYTES_MAX`, appends more than fits, says what happened, is then given room, and
says what happened then; each in one line of JSON.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from tests.unit.adapters.usagelog.logs import BROKER, T0, clock, payload_of

FILE_BYTES_MAX: Final = 10_000
LIMITED_COUNT: Final = 300


async def write_limited(folder: Path) -> None:
    alarms: asyncio.Queue[LogAlarm] = asyncio.Queue()
    log = SegmentedLog(
        folder, UsageLogSettings(retry_ms=1), broker=BROKER, clock=clock, on_alarm=alarms.put_nowait
    )
    await log.open()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, hard))
    for number in range(LIMITED_COUNT):
        log.append(payload_of(number), broker_timestamp_ms=T0 + number)
    alarm = await alarms.get()
    _say(_state(alarm, log, alarms) | {"segment_bytes": _largest(folder)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    over = await alarms.get()
    await log.close()
    _say(_state(over, log, alarms))


def _state(
    alarm: LogAlarm, log: SegmentedLog, alarms: asyncio.Queue[LogAlarm]
) -> dict[str, object]:
    return {
        "trouble": alarm.trouble,
        "appended": log.appended,
        "lost": log.lost,
        "further_alarms": alarms.qsize(),
    }


def _largest(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.glob("*.log"))


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write_limited(Path(sys.argv[1])))
