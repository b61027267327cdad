"""`rgd validate`: which kind of file it is, every fault of every file, exit codes.

The faults themselves are in tests/unit/config/test_bad_config.
"""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Rgd


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["", "- a\n", "groupz: {}\n", "groups: {}\nhttp: {}\n", "5"])
def test_a_file_of_neither_kind_or_of_both_is_a_fault(rgd: Rgd, tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "some.yaml", text)
    outcome = rgd("validate", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert (
        f"{path}: expected a groups file (groups, attach, limits, backlog_quotas) or a settings file"
        in outcome.err
    )


def test_the_environment_does_not_count(
    rgd: Rgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RGD_EXCHANGE__ROUND_MS", "nonsense")
    assert rgd("validate", write(tmp_path, "rgd.yaml", "cluster: east")).code == 0


def test_what_a_terminal_would_act_on_is_escaped(rgd: Rgd, tmp_path: Path) -> None:
    groups = write(
        tmp_path, "groups.yaml", '"\\e]0;owned\\a": 1\ngroups: {"\\e[31mred\\u202e": {}}'
    )
    outcome = rgd("validate", groups)
    assert outcome.code == 2
    assert not {"\x1b", "\x07", "\u202e"} & {*outcome.err}
    assert "\\x1b[31mred" in outcome.err


def test_the_name_of_a_valid_file_is_escaped_too(rgd: Rgd, tmp_path: Path) -> None:
    outcome = rgd("validate", write(tmp_path, "\x1b[31m\udcff.yaml", "groups: {}"))
    assert outcome.code == 0
    assert "\\x1b[31m\\udcff.yaml: ok" in outcome.out
