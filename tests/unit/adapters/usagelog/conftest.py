"""Logs that are closed when their test ends, the alarms that they raise, and disks that fail."""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import pytest

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog, Trimmed
from tests.unit.adapters.usagelog.logs import BROKER, TIMEOUT_S, MakeLog, clock

#: Size of the small disk, and of the file on it that a test removes to make room.
DISK_BYTES = 256 << 10
BALLAST_BYTES = 128 << 10


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
        on_trimmed: Callable[[Trimmed], None] | None = None,
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


def _mount(folder: Path, options: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    try:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let tests mount a small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of `DISK_BYTES`, half of it taken by the file `ballast`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    _mount(folder, f"size={DISK_BYTES}")
    (folder / "ballast").write_bytes(bytes(BALLAST_BYTES))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Generator[Path]:
    """A folder in which nothing can be made: by its mode, or for root by its mount."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    if os.geteuid() == 0:
        _mount(folder, "ro")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    else:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
