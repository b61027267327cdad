"""PIP-70's own test: seeking by time among producers whose clocks disagree, and what it costs to read.

Law: seek to T finds the first entry at or after T by the broker's time, by publish time where no broker
stamped; with the broker's time it reads at most a twentieth of all metadata. bench/seek.py has a million.
"""

import random
from pathlib import Path

import pytest

from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.reader import seek_time
from rgd.adapters.usagelog.trimming import facts_of
from tests.support.pip70_logs import T0, Pip70Log, counted_reads

COUNT = 4_000
SEGMENTS = 8
SEEKS = 1_000
#: Least bytes of an entry's headers in these logs: what decoding every message's metadata reads.
METADATA_BYTES_MIN = 60


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Pip70Log:
    return Pip70Log(tmp_path_factory.mktemp("pip70") / "log", COUNT, SEGMENTS)


@pytest.mark.slow
def test_a_thousand_times_are_found_by_the_brokers_time(log: Pip70Log) -> None:
    dice = random.Random(2)
    assert log.publish_times != sorted(log.publish_times)
    for _ in range(SEEKS):
        wanted = dice.randrange(T0 - 100, log.times[-1] + 100)
        found, expected = seek_time(log.folder, wanted), log.first_at(wanted)
        assert (None if found is None else found.index) == expected


def test_expiry_goes_by_the_brokers_time(log: Pip70Log) -> None:
    facts = [facts_of(segment) for segment in list_segments(log.folder)]
    assert [one.last_ms for one in facts] == log.times[COUNT // SEGMENTS - 1 :: COUNT // SEGMENTS]


def test_a_seek_reads_a_twentieth_of_the_metadata(log: Pip70Log) -> None:
    dice = random.Random(3)
    worst = 0
    for _ in range(100):
        with counted_reads() as read:
            seek_time(log.folder, dice.randrange(T0, log.times[-1]))
        worst = max(worst, read.count)
    assert 20 * worst <= COUNT * METADATA_BYTES_MIN


def test_without_the_brokers_part_publish_time_decides(tmp_path: Path) -> None:
    log = Pip70Log(tmp_path / "log", 400, 4, stamped=False)
    dice = random.Random(4)
    for _ in range(100):
        wanted = dice.randrange(min(log.times) - 10, max(log.times) + 10)
        found, expected = seek_time(log.folder, wanted), log.first_at(wanted)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert (int(Path(found.path).stem), found.timestamp) == (
                expected - expected % 100,
                log.times[expected],
            )
