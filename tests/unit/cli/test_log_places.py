"""`rgd log ls, seek, verify, upload` and `cat --raw`, on folders and tiers alike."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rgd.adapters.usagelog.files import FolderLock
from rgd.adapters.usagelog.inspecting import segments_at
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.cli.log_places import read_time
from rgd.wire.segment import SegmentReader, Stored
from tests.support.tiers import S3Server, s3_environment
from tests.unit.adapters.usagelog.logs import T0, payload_of, pendings, segments_in, write_log
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
    # Nobody writes there, so the last one is closed, too.
    count = len(segments_in(folder))
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
        {**one, "log": "", "state": ""} for one in local
    ]
    assert {one["state"] for one in tier} == {"tier"}
    table = rgd("log", "ls", str(folder)).out
    assert "STATE" in table
    assert len(table.splitlines()) == len(local) + 1


def test_a_log_that_is_written_keeps_its_last_segment(
    rgd: Rgd, folder: Path, tmp_path: Path
) -> None:
    lock = FolderLock(folder)
    lock.acquire()
    done = rgd("log", "upload", str(folder), str(tmp_path / "tier"))
    lock.release()
    assert done.out.startswith(f"{len(segments_in(folder)) - 1} segments, ")


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
    assert local.code == 1
    assert local.out.startswith(f"{folder}: {len(segments_in(folder))} segments, ")
    assert local.out.endswith(" bytes; faults: 1\n")
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


@pytest.mark.slow
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


def test_places_that_are_none_are_reported(rgd: Rgd, folder: Path, tmp_path: Path) -> None:
    for command in ("ls", "verify", "cat"):
        done = rgd("log", command, str(tmp_path / "nowhere"))
        assert (done.code, done.out) == (1, "")
        assert "nowhere" in done.err
    assert rgd("log", "cat", "--raw", "--json", str(folder)).code == 2


def test_an_upload_leaves_out_what_a_crash_tore_as_the_daemons_next_start_does(
    rgd: Rgd, folder: Path, tmp_path: Path
) -> None:
    with segments_in(folder)[-1].open("ab") as last:
        last.write(b"\0\0\1")
    torn = segments_in(folder)[-1].read_bytes()
    assert rgd("log", "upload", str(folder), "ftp://host").code == 2
    assert segments_in(folder)[-1].read_bytes() == torn, "who is refused changes nothing"
    place = uploaded(rgd, folder, str(tmp_path / "tier"))
    assert rgd("log", "verify", place).code == 0


def test_an_upload_wants_one_log_and_touches_nothing_else(
    rgd: Rgd, folder: Path, tmp_path: Path
) -> None:
    tier = tmp_path / "tier"
    empty = tmp_path / "empty"
    empty.mkdir()
    for place, told in (
        (folder.parent, f"name one of them, for instance {folder}"),
        (empty, "no such log folder"),
    ):
        done = rgd("log", "upload", str(place), str(tier))
        assert (done.code, done.out) == (1, "")
        assert told in done.err
        assert not tier.exists()
        assert list(place.glob("tier-*")) == []


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_an_upload_wants_a_name_that_the_daemon_would_take(
    rgd: Rgd, folder: Path, tmp_path: Path, name: str
) -> None:
    done = rgd("log", "upload", str(folder), str(tmp_path / "tier"), "--name", name)
    assert (done.code, done.out) == (2, "")
    assert "--name: expected a name" in done.err
    assert not (tmp_path / "tier").exists()


def test_a_segment_that_is_none_does_not_hide_the_other_places(
    rgd: Rgd, folder: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd"
    write_log(odd, pendings(COUNT), SETTINGS)
    second = segments_in(odd)[1]
    second.unlink()
    os.mkfifo(second)
    listed = rgd("log", "ls", "--json", str(odd), str(folder))
    assert listed.code == 1
    assert str(second) in listed.err
    assert len(listed.out.splitlines()) == 1 + len(segments_in(folder))


def test_a_segment_that_is_deleted_while_others_are_listed_is_left_out(folder: Path) -> None:
    segments = segments_in(folder)
    listing = segments_at(str(folder))
    found = [next(listing).first_index]
    segments[1].unlink()
    found += [one.first_index for one in listing]
    assert found == [int(path.stem) for path in (segments[0], *segments[2:])]


def test_a_bucket_that_is_not_there_is_reported(
    rgd: Rgd, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_environment(monkeypatch, s3_server.port):
        for command in ("ls", "verify", "cat"):
            done = rgd("log", command, "s3://no-such-bucket/p")
            assert done.code == 1
            assert done.err.count("s3://no-such-bucket/p: there is no such bucket") == 1


def test_eight_digits_are_a_date() -> None:
    assert read_time("20261122") == read_time("2026-11-22") == 1_795_305_600_000
    assert read_time("1795305600000") == 1_795_305_600_000


def test_seeking_wants_one_log(rgd: Rgd, folder: Path) -> None:
    write_log(folder.with_name("broker-2"), pendings(5), SETTINGS)
    done = rgd("log", "seek", str(folder.parent), "--index", "3")
    assert done.code == 1
    assert f"expected one log, found 2: name one of them, for instance {folder}" in done.err
    assert rgd("log", "seek", str(folder), "--index", "3").code == 0


def test_an_upload_says_what_it_set_aside(rgd: Rgd, folder: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "tier")
    uploaded(rgd, folder, place)
    (state,) = folder.glob("tier-*.json")
    state.write_bytes(b"{")
    done = rgd("log", "upload", str(folder), place)
    assert done.code == 0
    assert f"it is now {state.name}.damaged-0" in done.err


def test_a_name_that_no_object_can_have_is_an_error_in_a_line(rgd: Rgd, folder: Path) -> None:
    outcome = rgd(
        "log", "upload", folder.rename(folder.with_name("a\x07b")), folder.parent / "tier"
    )
    assert outcome.code == 1
    assert "illegal character" in outcome.err


def test_names_of_folders_and_files_are_escaped(rgd: Rgd, folder: Path, tmp_path: Path) -> None:
    red = folder.rename(tmp_path / "\x1b[31mred")
    plain = tmp_path / "plain"
    write_log(plain, pendings(COUNT), SETTINGS)
    path = segments_in(red)[0]
    path.write_bytes(b"?" + path.read_bytes()[1:])
    tier = str(tmp_path / "\x1b]0;tier\x07")
    for arguments in (
        ("ls", red),
        ("verify", red, tmp_path / "\x1b[0mmissing"),
        ("seek", red, "--index", COUNT - 1),
        ("upload", red, tier),
        ("upload", plain, tier),
    ):
        outcome = rgd("log", *arguments)
        assert not {"\x1b", "\x07"} & {*outcome.out, *outcome.err}, arguments
        assert "\\x1b" in outcome.out + outcome.err
