"""`rgd log ls, seek, verify, upload` and `cat --raw`, on folders and tiers alike."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.storage.objects import Objects
from rgd.wire.segment import SegmentReader, Stored
from tests.unit.adapters.usagelog.logs import (
    T0,
    payload_of,
    pendings,
    segments_in,
    write_log,
)
from tests.unit.cli.conftest import Rgd

COUNT = 100
SETTINGS = UsageLogSettings(segment_bytes=2048)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_log(tmp_path / "logs" / "broker-1", pendings(COUNT), SETTINGS)
    return tmp_path / "logs" / "broker-1"


def uploaded(rgd: Rgd, folder: Path, place: str) -> str:
    """Upload; where the log is in the tier."""
    done = rgd("log", "upload", str(folder), place)
    assert done.code == 0, done.err
    assert done.err == ""
    count = len(segments_in(folder)) - 1
    assert done.out.startswith(f"{count} segments, ")
    return done.out.split(" to ")[1].strip()


def lines_of(rgd: Rgd, *arguments: str) -> list[dict[str, object]]:
    done = rgd(*arguments)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_segments_are_listed_wherever_they_are(rgd: Rgd, folder: Path, tier_place: str) -> None:
    local = lines_of(rgd, "log", "ls", "--json", str(folder.parent))
    assert [one["state"] for one in local] == ["closed"] * (len(local) - 1) + ["open"]
    assert [one["first_index"] for one in local] == [int(path.stem) for path in segments_in(folder)]
    assert (local[-1]["last_index"], local[-1]["last_ms"]) == (COUNT - 1, T0 + 10 * (COUNT - 1))
    uploaded(rgd, folder, tier_place)
    tier = lines_of(rgd, "log", "ls", "--json", tier_place)
    assert [{**one, "log": "", "state": ""} for one in tier] == [
        {**one, "log": "", "state": ""} for one in local[:-1]
    ]
    assert {one["state"] for one in tier} == {"tier"}
    table = rgd("log", "ls", str(folder)).out
    assert "STATE" in table
    assert len(table.splitlines()) == len(local) + 1


def test_a_second_upload_finds_nothing_to_do(rgd: Rgd, folder: Path, tier_place: str) -> None:
    uploaded(rgd, folder, tier_place)
    there = Objects(tier_place).names("")
    assert rgd("log", "upload", str(folder), tier_place).out.startswith("0 segments, 0 bytes")
    assert Objects(tier_place).names("") == there
    assert len(segments_in(folder)) > 1


def test_a_tier_is_printed_as_a_folder_is(rgd: Rgd, folder: Path, tier_place: str) -> None:
    uploaded(rgd, folder, tier_place)
    # The payloads are no reports, which is said beside them.
    local = rgd("log", "cat", "--json", str(folder)).out.splitlines()
    tier = rgd("log", "cat", "--json", tier_place).out.splitlines()
    assert tier == local[: len(tier)]
    assert len(tier) == int(segments_in(folder)[-1].stem)


def test_seeking_says_where(rgd: Rgd, folder: Path, tier_place: str) -> None:
    uploaded(rgd, folder, tier_place)
    for place in (str(folder), tier_place):
        for option, value in (("--index", "7"), ("--time", str(T0 + 70))):
            (found,) = lines_of(rgd, "log", "seek", "--json", place, option, value)
            assert (found["index"], found["timestamp"]) == (7, T0 + 70)
    told = rgd("log", "seek", str(folder), "--time", "2026-11-21T04:11:40.070").out.split()
    assert told[2:] == ["7", "2026-11-21T04:11:40.070Z"]
    done = rgd("log", "seek", str(folder), "--index", "1000")
    assert done.code == 1
    assert "ends before" in done.err
    for wrong in ((), ("--index", "1", "--time", "2"), ("--time", "noon")):
        assert rgd("log", "seek", str(folder), *wrong).code == 2


def test_verifying_finds_damage_in_folders_and_tiers(
    rgd: Rgd, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tier"
    uploaded(rgd, folder, str(place))
    assert rgd("log", "verify", str(folder), str(place)).code == 0
    in_tier = sorted(place.rglob("*.log"))[1]
    for path in (segments_in(folder)[1], in_tier):
        data = bytearray(path.read_bytes())
        data[40] ^= 0xFF
        path.write_bytes(data)
    local = rgd("log", "verify", str(folder))
    assert (local.code, local.out) == (1, "")
    assert f"{segments_in(folder)[1]}: " in local.err
    tier = rgd("log", "verify", str(place))
    assert tier.code == 1
    assert "its manifest says" in tier.err


def test_verifying_finds_what_is_missing(rgd: Rgd, folder: Path) -> None:
    segments = segments_in(folder)
    segments[1].unlink()
    done = rgd("log", "verify", str(folder))
    assert done.code == 1
    assert f"expected the index {int(segments[1].stem)}, got {int(segments[2].stem)}" in done.err


@pytest.mark.parametrize("expose", [False, True])
def test_raw_entries_are_a_segment_without_the_brokers_part(folder: Path, expose: bool) -> None:
    options = ("--expose",) if expose else ()
    command = (sys.executable, "-m", "rgd", "log", "cat", "--raw", *options, str(folder))
    done = subprocess.run(command, check=True, capture_output=True).stdout
    reader = SegmentReader()
    found = [*reader.feed(done), *reader.finish()]
    assert all(isinstance(one, Stored) for one in found)
    entries = [one.entry for one in found if isinstance(one, Stored)]
    assert [one.payload for one in entries] == [payload_of(number) for number in range(COUNT)]
    assert {one.broker is not None for one in entries} == {expose}


def test_places_that_are_none_are_told(rgd: Rgd, folder: Path, tmp_path: Path) -> None:
    for command in ("ls", "verify", "cat"):
        done = rgd("log", command, str(tmp_path / "nowhere"))
        assert (done.code, done.out) == (1, "")
        assert "nowhere" in done.err
    assert rgd("log", "upload", str(folder), "ftp://host").code == 2
    assert rgd("log", "cat", "--raw", "--json", str(folder)).code == 2
