"""What PIP-70 promises: seeking by the broker's time reads a fraction of what decoding all metadata reads.

    python bench/seek.py [--json] [--entries N] [--segments N]

Entries of 8 producers with publish times in random order; seeks to random times, each checked against
what was written. Bytes are those of segments and sparse indexes that readers ask for.
"""

import argparse
import random
import tempfile
import time
from bisect import bisect_left
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.reader import seek_time
from rgd.wire.frame import headers_and_payload
from rgd.wire.segment import SegmentReader, Stored
from tests.support.pip70_logs import T0, Pip70Log, counted_reads

SEEKS: Final = 1_000
ENTRIES: Final = 1_000_000
SEGMENTS: Final = 64

#: `[0e01][u32 crc32c]` before the size of MessageMetadata, and that size.
_HEAD_BYTES: Final = 10


def metadata_bytes(log: Pip70Log) -> int:
    """What decoding every message's metadata reads: lengths, the broker's part, MessageMetadata."""
    path = min(log.folder.glob("*.log"))
    total = count = 0
    for found in SegmentReader().feed(path.read_bytes()):
        assert isinstance(found, Stored)
        rest = headers_and_payload(found.data)
        size = int.from_bytes(rest[6:_HEAD_BYTES], "big")
        total += 4 + len(found.data) - len(rest) + _HEAD_BYTES + size
        count += 1
    return total * len(log.times) // count


def measure(options: argparse.Namespace) -> Figures:
    """Seek with the sparse index and, in a few cases, without it."""
    dice = random.Random(5)
    with tempfile.TemporaryDirectory() as scratch:
        log = Pip70Log(Path(scratch) / "log", options.entries, options.segments)
        reads, took = [], []
        for _ in range(SEEKS):
            wanted = dice.randrange(T0, log.times[-1])
            begun = time.perf_counter()
            with counted_reads() as read:
                found = seek_time(log.folder, wanted)
            took.append(time.perf_counter() - begun)
            reads.append(read.count)
            assert found is not None
            assert found.index == bisect_left(log.times, wanted), "a seek went wrong"
        whole = metadata_bytes(log)
        marks = sum(index_path(path).stat().st_size for path in log.folder.glob("*.log"))
    return {
        "entries": options.entries,
        "segments": options.segments,
        "seeks_right": SEEKS,
        "seek_bytes_max": max(reads),
        "seek_bytes_mean": sum(reads) // SEEKS,
        "all_metadata_bytes": whole,
        "fewer_bytes_x": round(whole / max(reads), 1),
        "index_bytes": marks,
        "seek_p50_us": round(sorted(took)[SEEKS // 2] * 1e6),
        "seek_p99_us": round(sorted(took)[SEEKS * 99 // 100] * 1e6),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """How large a log."""
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--segments", type=int, default=SEGMENTS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
