"""`rgd log verify`: every fault is found where it is, and what is sound is none, with and without indexes.

Law: of any log that was written, in whatever runs with whatever interceptors, nothing is a fault; a segment
that was removed, swapped, doubled or shortened is, and so is each segment that cannot be read.
"""

import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.verifying import Fault, Finding, Note, Verification
from rgd.ports.usagelog import Interceptor
from rgd.storage.objects import Objects
from tests.unit.adapters.usagelog.logs import pendings, segments_in, write_log
from tests.unit.adapters.usagelog.tier_world import World

COUNT = 120
SETTINGS = UsageLogSettings(segment_bytes=1024)
NONE: frozenset[Interceptor] = frozenset()
CHOICES = [
    frozenset(some) for size in range(3) for some in itertools.combinations(Interceptor, size)
]


def findings(place: Path | str) -> list[Finding]:
    return list(Verification(str(place)).findings(lambda _: None))


def faults(place: Path | str) -> list[str]:
    return [one for one in findings(place) if isinstance(one, Fault)]


@pytest.fixture(params=CHOICES, ids=lambda some: "+".join(sorted(some)) or "none")
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    added = replace(SETTINGS, interceptors=request.param)
    write_log(tmp_path / "log", pendings(COUNT), added)
    assert len(segments_in(tmp_path / "log")) > 4
    return tmp_path / "log"


@pytest.mark.slow
@given(
    runs=st.lists(st.tuples(st.sampled_from(CHOICES), st.integers(1, 40)), min_size=1, max_size=5)
)
def test_what_was_written_is_no_fault(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[frozenset[Interceptor], int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    first = 0
    for added, count in runs:
        write_log(folder, pendings(count, first=first), replace(SETTINGS, interceptors=added))
        first += count
    check = Verification(str(folder))
    found = list(check.findings(lambda _: None))
    assert [one for one in found if isinstance(one, Fault)] == []
    assert check.entries == first
    unindexed = any(Interceptor.INDEX not in added for added, _ in runs)
    assert any("no index" in one for one in found if isinstance(one, Note)) == unindexed


def test_a_segment_that_is_missing_is_found(folder: Path) -> None:
    segments = segments_in(folder)
    segments[2].unlink()
    missing = int(segments[3].stem) - int(segments[2].stem)
    (fault,) = faults(folder)
    assert fault.startswith(f"{segments[3]}: expected the index {int(segments[2].stem)}, got ")
    assert fault.endswith(f": {missing} entries are missing")


def test_segments_that_were_swapped_are_found(folder: Path) -> None:
    one, other = segments_in(folder)[1:3]
    one.rename(folder / "x")
    other.rename(one)
    (folder / "x").rename(other)
    assert any(str(other) in fault for fault in faults(folder))


def test_each_segment_that_cannot_be_read_is_reported_and_the_others_are_checked(
    folder: Path,
) -> None:
    segments = segments_in(folder)
    for path in segments[0], segments[2]:
        path.unlink()
    os.mkfifo(segments[0])
    segments[2].mkdir()
    data = bytearray(segments[3].read_bytes())
    data[-1] ^= 1
    segments[3].write_bytes(data)
    told = faults(folder)
    assert len(told) == 3
    assert str(segments[0]) in told[0]
    assert "it is a FIFO, not a regular file" in told[0]
    assert str(segments[2]) in told[1]
    assert "it is a directory" in told[1]
    assert str(segments[3]) in told[2]


def test_a_tier_whose_objects_are_damaged_is_checked_to_its_end(
    tmp_path: Path, tier_place: str
) -> None:
    world = World(tmp_path / "log")
    world.write()
    uploader = world.uploader(Objects(tier_place), local_s=3600)
    uploader.cycle()
    check = Verification(tier_place)
    assert list(check.findings(lambda _: None)) == []
    assert check.entries == uploader.state.uploaded
    objects, first = uploader.tier.objects, uploader.state.segments
    for number, suffix, data in (
        (0, ".log", b"x" * 10),
        (1, ".log", b""),
        (2, ".json", b"[" * 999),
    ):
        objects.replace(uploader.tier.name_of(first[number].first_index, suffix), data)
    objects.delete(uploader.tier.name_of(first[4].first_index, ".log"))
    told = faults(tier_place)
    for number in (0, 1, 2, 4):
        assert any(f"{first[number].first_index:020}" in fault for fault in told)
    for number in (5, 6):
        assert not any(f"{first[number].first_index:020}" in fault for fault in told)


def test_a_manifest_is_held_against_the_entries(tmp_path: Path) -> None:
    place = str(tmp_path / "tier")
    world = World(tmp_path / "log")
    write_log(world.folder, pendings(COUNT), replace(SETTINGS, interceptors=NONE))
    uploader = world.uploader(Objects(place), local_s=3600)
    uploader.cycle()
    told = uploader.state.segments[1]
    name = uploader.tier.name_of(told.first_index, ".json")
    path = tmp_path / "tier" / name
    path.write_text(
        path.read_text().replace(f'"last_index": {told.last_index}', '"last_index": 999')
    )
    assert any("as its manifest says" in fault for fault in faults(place))
