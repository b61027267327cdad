"""A report replaces a former one and nothing else, in a folder and in a bucket.

Not covered: two reports at once into one place.
"""

import errno
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rgd.analysis.output import GROUPS, PAGE, PARTS, SUMMARY, WINDOWS, Staging, WindowFiles, staged
from rgd.analysis.schema import WINDOWS as COLUMNS
from rgd.analysis.schema import arrow
from rgd.errors import ConfigError
from rgd.storage.objects import Objects


def write(out: Path | str, what: str, *, has_groups: bool = True) -> None:
    with staged(out) as staging:
        # As a task does that is tried twice.
        for _ in range(2):
            part = WindowFiles(staging.windows, task=7)
            part.add(arrow(COLUMNS).empty_table())
            part.close()
        assert [file.name for file in staging.fetch().iterdir()] == ["part-00007-000.parquet"]
        fill(staging, what, has_groups=has_groups)


def fill(staging: Staging, what: str, *, has_groups: bool) -> None:
    (staging.folder / WINDOWS / f"{what}.parquet").write_text(what)
    if has_groups:
        (staging.folder / GROUPS).mkdir()
        (staging.folder / GROUPS / "025.html").touch()
    (staging.folder / PAGE).write_text(what)
    (staging.folder / SUMMARY).write_text('{"groups": []}')


def parts(place: str) -> list[str]:
    return sorted({name.partition("/")[0] for name in Objects(place).names("")})


def test_a_rerun_replaces_every_part(tier_place: str, tmp_path: Path) -> None:
    Objects(tier_place).create(".rgd-report-of-one-that-was-killed/windows", b"")
    write(tier_place, "first")
    write(tier_place, "second", has_groups=False)

    assert parts(tier_place) == [PAGE, SUMMARY, WINDOWS]
    objects = Objects(tier_place)
    assert objects.names(WINDOWS).keys() == {
        "windows/part-00007-000.parquet",
        "windows/second.parquet",
    }
    assert objects.read(PAGE) == b"second"
    (tmp_path / "part").write_bytes(objects.read("windows/part-00007-000.parquet"))
    assert pq.read_schema(tmp_path / "part") == arrow(COLUMNS)


def test_a_report_that_fails_leaves_the_former_one(tier_place: str) -> None:
    def fail() -> None:
        with staged(tier_place) as staging:
            staging.fetch()
            fill(staging, "second", has_groups=True)
            raise KeyError

    write(tier_place, "first")
    with pytest.raises(KeyError):
        fail()

    assert parts(tier_place) == sorted(PARTS)
    assert Objects(tier_place).read(PAGE) == b"first"


def test_a_full_disk_is_said_of_the_folder(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(ConfigError, match=r"out cannot be written .No space left on device.; name"),
        staged(tmp_path / "out"),
    ):
        raise full
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param({"precious.txt": "mine"}, "holds 'precious.txt'", id="a stranger"),
        pytest.param({SUMMARY: "{}", PAGE: ""}, "no former report", id="no report of ours"),
        pytest.param({SUMMARY: "not json"}, "no former report", id="unreadable"),
        pytest.param({SUMMARY: "[]"}, "no former report", id="another summary"),
    ],
)
def test_anybody_elses_place_is_refused_and_untouched(
    tier_place: str, made: dict[str, str], said: str
) -> None:
    objects = Objects(tier_place)
    for name, text in made.items():
        objects.create(name, text.encode())

    with pytest.raises(ConfigError, match=said) as refused:
        write(tier_place, "first")

    assert refused.value.faults[0].key == "--out"
    assert {name: objects.read(name).decode() for name in objects.names("")} == made


@pytest.mark.parametrize("out", ["http://host/report", "s3://"])
def test_what_is_no_place_is_refused(out: str) -> None:
    with pytest.raises(ConfigError, match="expected a folder, file:///PATH or s3://BUCKET"):
        write(out, "first")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="is a file"):
        write(tmp_path / "file", "first")
    with pytest.raises(ConfigError, match="cannot be written"):
        write(tmp_path / "file" / "below", "first")
