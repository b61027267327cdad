"""A report replaces a former one and nothing else.

Not covered: two reports at once into one folder.
"""

import errno
from pathlib import Path

import pytest

from rgd.analysis.output import GROUPS, PAGE, PARTS, SUMMARY, WINDOWS, staged
from rgd.errors import ConfigError


def write(out: Path, what: str) -> None:
    with staged(out) as staging:
        (staging / WINDOWS).mkdir()
        (staging / WINDOWS / f"{what}.parquet").write_text(what)
        (staging / GROUPS).mkdir()
        (staging / PAGE).write_text(what)
        (staging / SUMMARY).write_text('{"groups": []}')


def names(out: Path) -> list[str]:
    return sorted(entry.name for entry in out.iterdir())


def test_a_new_folder_gets_the_parts_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "some" / "where", "first")

    assert names(tmp_path / "some" / "where") == sorted(PARTS)


def test_a_rerun_replaces_every_part(tmp_path: Path) -> None:
    write(tmp_path, "first")
    write(tmp_path, "second")

    assert names(tmp_path) == sorted(PARTS)
    assert names(tmp_path / WINDOWS) == ["second.parquet"]
    assert (tmp_path / PAGE).read_text() == "second"


def test_a_rerun_without_files_of_groups_removes_them(tmp_path: Path) -> None:
    write(tmp_path, "first")
    with staged(tmp_path) as staging:
        (staging / WINDOWS).mkdir()
        (staging / PAGE).touch()
        (staging / SUMMARY).write_text('{"groups": []}')

    assert names(tmp_path) == [PAGE, SUMMARY, WINDOWS]


def test_a_report_that_fails_leaves_the_former_one(tmp_path: Path) -> None:
    write(tmp_path, "first")

    with pytest.raises(ConfigError, match="No such file"), staged(tmp_path) as staging:
        (staging / "report.html").rename(tmp_path / "nowhere")

    assert names(tmp_path) == sorted(PARTS)
    assert (tmp_path / PAGE).read_text() == "first"


def test_a_first_report_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"), staged(tmp_path / "out") as staging:
        (staging / "report.html").rename(tmp_path / "nowhere")

    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_said_of_the_folder(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(ConfigError, match=r"out cannot be written .No space left on device.; name"),
        staged(tmp_path / "out"),
    ):
        raise full
    assert names(tmp_path) == []


def test_what_a_killed_report_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".rgd-report-killed").mkdir()

    write(tmp_path, "first")

    assert names(tmp_path) == sorted(PARTS)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param({"precious.txt": "mine"}, "holds 'precious.txt'", id="a stranger"),
        pytest.param({SUMMARY: "{}", PAGE: ""}, "no former report", id="no report of ours"),
        pytest.param({SUMMARY: "not json"}, "no former report", id="unreadable"),
        pytest.param({SUMMARY: "[]"}, "no former report", id="another summary"),
    ],
)
def test_anybody_elses_folder_is_refused_and_untouched(
    tmp_path: Path, made: dict[str, str], said: str
) -> None:
    for name, text in made.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(ConfigError, match=said) as refused:
        write(tmp_path, "first")

    assert refused.value.faults[0].key == "--out"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == made


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="is a file"):
        write(tmp_path / "file", "first")
    with pytest.raises(ConfigError, match="cannot be written"):
        write(tmp_path / "file" / "below", "first")
