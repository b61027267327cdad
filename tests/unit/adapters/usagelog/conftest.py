"""Logs that are closed when their test ends, and the alarms that they raise."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from rgd.adapters.usagelog.appender import ignore
from rgd.adapters.usagelog.retention import Removal
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from tests.unit.adapters.usagelog.logs import BROKER, TIMEOUT_S, MakeLog, clock


class Alarms:
    """What a log told through its alarm, in order."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[LogAlarm] = asyncio.Queue()
        self.count = 0

    def put(self, alarm: LogAlarm) -> None:
        self.count += 1
        self._queue.put_nowait(alarm)

    async def next(self) -> LogAlarm:
        async with asyncio.timeout(TIMEOUT_S):
            return await self._queue.get()


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture
async def make_log(tmp_path: Path, alarms: Alarms) -> AsyncGenerator[MakeLog]:
    """Makes logs in the test's folder (`folder`), with settings by keyword."""
    made: list[SegmentedLog] = []

    def make(
        folder: Path = tmp_path / "log",
        on_trimmed: Callable[[Removal], None] = ignore,
        **settings: object,
    ) -> SegmentedLog:
        made.append(
            SegmentedLog(
                folder,
                UsageLogSettings(**settings),  # type: ignore[arg-type]
                broker=BROKER,
                clock=clock,
                on_alarm=alarms.put,
                on_trimmed=on_trimmed,
            )
        )
        return made[-1]

    yield make
    async with asyncio.timeout(TIMEOUT_S):
        for log in made:
            await log.close()
