"""What an entry carries, when segments roll, and what a failing disk leaves behind.

Not covered: queues, threads and retries (test_writer.py), real full disks (test_full_disk.py), times and
indexes over restarts (tests/contract/usagelog, tests/property/test_usagelog.py).
A failing `fsync` is injected: no file system here fails it at will.
"""

import errno
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.wire.frame import BrokerEntryMetadata, Entry
from tests.unit.adapters.usagelog.logs import BROKER, T0, pendings, read, segments_in

MakeAppender = Callable[..., Appender]


@pytest.fixture
def make_appender(tmp_path: Path) -> Generator[MakeAppender]:
    made: list[Appender] = []

    def make(**settings: object) -> Appender:
        appender = Appender(
            tmp_path,
            UsageLogSettings(**settings),  # type: ignore[arg-type]
            broker=BROKER,
        )
        made.append(appender)
        appender.resume()
        return appender

    yield make
    for appender in made:
        appender.close()


def test_an_entry_carries_all_that_pulsar_and_the_report_need(
    tmp_path: Path, make_appender: MakeAppender
) -> None:
    appender = make_appender()
    appender.write([Pending(b"\0payload", T0, 0), Pending(b"", T0 - 5, 3)])
    entries, _ = read(tmp_path)
    assert [item.entry for item in entries] == [
        Entry(BROKER, 0, T0, b"\0payload", (), BrokerEntryMetadata(T0, 0)),
        Entry(BROKER, 3, T0 - 5, b"", (), BrokerEntryMetadata(T0, 1)),
    ]


class FailingFsync:
    """Fails while `is_failing`, else syncs."""

    def __init__(self) -> None:
        self.is_failing = True
        self._fsync = os.fsync

    def __call__(self, descriptor: int) -> None:
        if self.is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fsync(descriptor)


@pytest.fixture
def failing_fsync(monkeypatch: pytest.MonkeyPatch) -> FailingFsync:
    failing = FailingFsync()
    failing.is_failing = False
    monkeypatch.setattr(os, "fsync", failing)
    return failing


def test_a_sync_that_fails_while_resuming_ends_the_segment(
    tmp_path: Path, make_appender: MakeAppender, failing_fsync: FailingFsync
) -> None:
    first = make_appender()
    first.write(pendings(2))
    first.close()
    failing_fsync.is_failing = True
    second = Appender(tmp_path, UsageLogSettings(), broker=BROKER)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        second.resume()
    failing_fsync.is_failing = False
    second.resume()
    assert second.synced_index == -1, "the system reports a failed sync only once"
    second.write(pendings(1))
    second.close()
    assert [len(read(segment)[0]) for segment in segments_in(tmp_path)] == [2, 1]


def test_a_removed_segment_is_noticed_by_the_next_sync(
    tmp_path: Path, make_appender: MakeAppender
) -> None:
    appender = make_appender()
    appender.write(pendings(2))
    segments_in(tmp_path)[0].unlink()
    with pytest.raises(FileNotFoundError, match="removed"):
        appender.sync()
    assert (appender.doubtful, appender.synced_index) == (2, -1)
    appender.resume()
    appender.write(pendings(1))
    # The indexes of what was removed are not given twice.
    assert [segment.name for segment in segments_in(tmp_path)] == [f"{2:020}.log"]


def test_bytes_of_a_stranger_are_neither_cut_nor_written_to(
    tmp_path: Path, make_appender: MakeAppender
) -> None:
    appender = make_appender(segment_bytes=1)
    appender.write(pendings(1))
    stranger = tmp_path / f"{1:020}.log"
    stranger.write_bytes(b"stranger")
    with pytest.raises(FileExistsError, match="another process"):
        appender.write(pendings(1))
    assert stranger.read_bytes() == b"stranger"
