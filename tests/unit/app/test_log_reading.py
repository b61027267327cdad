"""Reading a log while its tier hangs: what is on disk is answered, what is not is an error, nothing waits for ever.

A segment in a folder tier that is a FIFO hangs as a dead network file system does: opening it never returns.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.app.call_threads import CallThreadBusy, CallThreadClosed
from rgd.app.log_keeping import LogKeeper
from rgd.app.log_reading import LogPlace, LogReading
from rgd.ports.log_door import From
from rgd.storage.errors import TierDown
from rgd.storage.objects import Objects
from rgd.wire.frame import decode_entry
from tests.support.kept_logs import SetClock, keeper_of, uploader_of
from tests.unit.adapters.usagelog.logs import (
    T0,
    TIMEOUT_S,
    payload_of,
    pendings,
    segments_in,
    write_log,
)

COUNT = 200
STEP_MS = 10
SETTINGS = UsageLogSettings(segment_bytes=2048)


class Kept:
    """A log, a part of it in a folder tier alone."""

    def __init__(self, root: Path) -> None:
        self.folder, self.tier = root / "broker-1", root / "tier"
        write_log(self.folder, pendings(COUNT, step_ms=STEP_MS), SETTINGS)
        clock = SetClock()
        uploader = uploader_of(self.folder, str(self.tier), clock.now)
        uploader.cycle()
        self.keeper: LogKeeper = keeper_of(self.folder, COUNT, clock=clock, uploader=uploader)
        self.first_on_disk = int(segments_in(self.folder)[0].stem)

    async def payloads(self, start: From, limit: int = COUNT) -> list[bytes]:
        view = await self.keeper.entries(start, limit)
        return [decode_entry(one.headers_and_payload).payload for one in view.entries]


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    one = Kept(tmp_path)
    yield one
    await one.keeper.close()


@pytest.fixture
def hanging(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tier that never answers, once it holds what it is to hold."""
    assert kept.first_on_disk
    is_over = threading.Event()

    def hang(*_: object) -> bytes:
        is_over.wait()
        return b""

    monkeypatch.setattr(Objects, "read_range", hang)
    yield
    is_over.set()


@pytest.mark.usefixtures("hanging")
async def test_a_tier_that_hangs_holds_up_its_own_readers_alone(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept.keeper._reading._tier, "_timeout_s", 0.05)
    first = kept.first_on_disk
    for start in (From(0), From(first - 1), From(time_ms=T0)):
        with pytest.raises(CallThreadBusy, match="tier"):
            await kept.keeper.entries(start, 1)
    on_disk = [payload_of(number) for number in range(first, COUNT)]
    assert await kept.payloads(From(first)) == on_disk
    assert await kept.payloads(From(time_ms=T0 + first * STEP_MS)) == on_disk
    assert await kept.payloads(From(time_ms=T0 + (first - 1) * STEP_MS + 1)) == on_disk
    assert await kept.payloads(From(COUNT)) == []
    assert kept.keeper._reading.tier_errors == 3


async def test_a_fifo_in_place_of_a_segment_is_refused_and_holds_nobody_up(kept: Kept) -> None:
    for path in [*kept.tier.rglob("*.log"), *kept.tier.rglob("*.idx")]:
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(TierDown, match="regular file"):
        await kept.keeper.entries(From(0), 1)
    assert kept.keeper._reading.tier_errors == 1
    assert len(await kept.payloads(From(kept.first_on_disk), 5)) == 5
    with pytest.raises(TierDown, match="regular file"):
        Objects(str(kept.tier)).size(str(path.relative_to(kept.tier)))


@pytest.mark.usefixtures("hanging")
async def test_closing_does_not_wait_for_a_read_that_hangs(kept: Kept) -> None:
    read = asyncio.create_task(kept.keeper.entries(From(0), 1))
    # An answer from the disk, asked for later, comes while the other one hangs.
    assert await kept.payloads(From(COUNT)) == []
    async with asyncio.timeout(TIMEOUT_S):
        await kept.keeper.close()
        with pytest.raises(CallThreadClosed):
            await read


@pytest.mark.parametrize("limit", [3, 5, 7, 11])
async def test_without_indexes_damage_makes_no_reader_read_twice(
    tmp_path: Path, limit: int
) -> None:
    settings = replace(SETTINGS, interceptors=frozenset())
    write_log(tmp_path, pendings(COUNT, step_ms=STEP_MS), settings)
    whole = [payload_of(number) for number in range(COUNT)]
    first = segments_in(tmp_path)[0]
    data = bytearray(first.read_bytes())
    data[data.index(whole[3])] ^= 1
    first.write_bytes(data)
    del whole[3]
    reading = LogReading(LogPlace(tmp_path, "usage", "broker-1"), None, lambda: COUNT)
    found: list[bytes] = []
    at, more = 0, True
    while more:
        view = await reading.entries(From(at), limit)
        found += [decode_entry(one.headers_and_payload).payload for one in view.entries]
        at, more = view.next_index, view.more
    reading.close()
    assert found == whole
