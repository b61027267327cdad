"""PIP-70's own test as a log: entries of 8 producers with publish times in random order, brokers' times in order."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgd.adapters.usagelog import sources
from rgd.adapters.usagelog.index import load_marks, mend
from rgd.storage.marks import Mark
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.segment import encode_stored, segment_name

PRODUCERS = 8
T0 = 1_795_234_300_000
STEP_MS_MAX = 5
#: Producers' clocks are wrong by so much at most.
WRONG_MS_MAX = 3_600_000


class Pip70Log:
    """What was written: the brokers' times, none where entries have no metadata, and the publish times."""

    def __init__(
        self, folder: Path, count: int, segments: int, *, seed: int = 1, stamped: bool = True
    ) -> None:
        dice = random.Random(seed)
        self.folder = folder
        self.times: list[int] = []
        self.publish_times: list[int] = []
        folder.mkdir(parents=True)
        per_segment = -(-count // segments)
        now = T0
        for first in range(0, count, per_segment):
            stored = []
            for index in range(first, min(first + per_segment, count)):
                now += dice.randrange(STEP_MS_MAX)
                publish_time = now + dice.randrange(-WRONG_MS_MAX, WRONG_MS_MAX)
                broker = BrokerEntryMetadata(now, index) if stamped else None
                entry = Entry(
                    producer_name=f"producer-{dice.randrange(PRODUCERS)}",
                    sequence_id=index,
                    publish_time=publish_time,
                    payload=dice.randbytes(dice.randrange(20, 400)),
                    properties=(("key", f"{index % 100}"), ("region", "eu-central-1")),
                    broker=broker,
                )
                stored.append(encode_stored(encode_entry(entry)))
                self.times.append(now if stamped else publish_time)
                self.publish_times.append(publish_time)
            path = folder / segment_name(first)
            path.write_bytes(b"".join(stored))
            mend(path)

    def first_at(self, timestamp_ms: int) -> int | None:
        """The first entry at or after a time."""
        return next((n for n, time in enumerate(self.times) if time >= timestamp_ms), None)


class ReadBytes:
    """How many bytes of segments and indexes were read."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted_reads() -> Iterator[ReadBytes]:
    """Count what readers of log folders read."""
    read = ReadBytes()
    pread = os.pread

    def counted_pread(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        read.count += len(data)
        return data

    def counted_marks(segment: Path) -> list[Mark]:
        read.count += segment.with_suffix(".idx").stat().st_size
        return load_marks(segment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", counted_pread)
        patch.setattr(sources, "load_marks", counted_marks)
        yield read
