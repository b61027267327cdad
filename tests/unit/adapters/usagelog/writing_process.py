"""A process that writes a log until it is killed, or until its disk is full; run by test_crash.py and
test_full_disk.py.

    python -m tests.unit.adapters.usagelog.writing_process endless FOLDER FIRST
    python -m tests.unit.adapters.usagelog.writing_process limited FOLDER

`endless` appends payloads numbered from FIRST on for ever, and says `flushed N` when a flush has
covered payload N. `limited` may write no file larger than `FILE_BYTES_MAX`, appends more than fits,
says what happened, is then given room, and says what happened then; each in one line of JSON.
"""

import asyncio
import itertools
import json
import resource
import sys
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from tests.unit.adapters.usagelog.logs import BROKER, T0, clock, ignore_alarm, payload_of

#: Payloads of `endless` are shorter than this.
SIZE_MAX: Final = 5000
FLUSH_EVERY: Final = 7

FILE_BYTES_MAX: Final = 10_000
LIMITED_COUNT: Final = 300


async def write_endlessly(folder: Path, first: int) -> None:
    settings = UsageLogSettings(segment_bytes=64 << 10, fsync_ms=1)
    log = SegmentedLog(folder, settings, broker=BROKER, clock=clock, on_alarm=ignore_alarm)
    await log.open()
    for number in itertools.count(first):
        log.append(payload_of(number, SIZE_MAX), broker_timestamp_ms=T0 + number)
        if number % FLUSH_EVERY == 0:
            await log.flush()
            assert log.lost == 0
            _say(f"flushed {number}")


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


def _say(what: object) -> None:
    sys.stdout.write(f"{what if isinstance(what, str) else json.dumps(what)}\n")
    sys.stdout.flush()


def main(mode: str, folder: str, *rest: str) -> None:
    if mode == "endless":
        asyncio.run(write_endlessly(Path(folder), int(rest[0])))
    else:
        asyncio.run(write_limited(Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
