"""Copies of logs out of a tier are log folders, without what is marked."""

from pathlib import Path

from rgd.storage.copying import copy_logs, is_bucket
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import LogTier, checksum_of


def test_copies_are_what_was_uploaded(tier_place: str, tmp_path: Path) -> None:
    objects = Objects(tier_place)
    for log in ("usage/a/1", "usage/b/2"):
        tier = LogTier(objects, log)
        for first_index in (0, 10, 20):
            data = f"{log} {first_index}".encode()
            facts = TieredSegment(first_index, first_index + 9, 1, 2, len(data), checksum_of(data))
            tier.put(facts, data, b"")
        tier.mark(0)
    assert copy_logs(objects, tmp_path / "copy") == 4
    copied = {str(path.relative_to(tmp_path / "copy")): path.read_text() for path in (tmp_path / "copy").rglob("*.log")}  # fmt: skip
    assert copied == {
        f"{log}/{first_index:020}.log": f"{log} {first_index}"
        for log in ("usage/a/1", "usage/b/2")
        for first_index in (10, 20)
    }


def test_segments_outside_a_time_range_are_not_copied(tier_place: str, tmp_path: Path) -> None:
    objects = Objects(tier_place)
    tier = LogTier(objects, "usage/a/1")
    for hour in range(5):
        data = f"hour {hour}".encode()
        times = (3_600_000 * hour, 3_600_000 * (hour + 1) - 1)
        facts = TieredSegment(10 * hour, 10 * hour + 9, *times, len(data), checksum_of(data))
        tier.put(facts, data, b"")
    assert copy_logs(objects, tmp_path / "copy", 3 * 3_600_000 - 1, 3 * 3_600_000 + 1) == 2
    assert {path.read_text() for path in (tmp_path / "copy").rglob("*.log")} == {"hour 2", "hour 3"}
    assert copy_logs(objects, tmp_path / "none", 5 * 3_600_000) == 0


def test_only_buckets_are_copied() -> None:
    assert is_bucket("s3://bucket/below")
    assert not any(map(is_bucket, ("some/where", "/some/where", "file:///some/where")))
