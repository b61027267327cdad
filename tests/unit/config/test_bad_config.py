"""Every mistake in tests/data/bad_config is told with file, key and what was expected, and no more.

A file says itself what is wrong with it: `# fault: KEY | the words that follow` for each fault. The
folder is walked, so a file cannot be forgotten; one that says nothing fails. The wording of
faults in the environment and in options is in test_load.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rgd.config.groups import load_groups
from rgd.config.load import load_settings
from rgd.config.tokens import load_tokens
from rgd.errors import ConfigError

FOLDER = Path(__file__).parents[2] / "data" / "bad_config"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
FAULT = re.compile(r"# fault: (.*?) ?\| (.+)")

LOADERS: dict[str, Callable[[Path], object]] = {
    "groups": load_groups,
    "settings": lambda path: load_settings(path, {}, {}),
    "tokens": load_tokens,
}


def said_faults(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [match.groups() for line in lines if (match := FAULT.fullmatch(line))]  # type: ignore[misc]


def test_the_walk_finds_files_of_each_kind_and_no_others() -> None:
    assert {path.parent.name for path in FILES} == set(LOADERS)
    assert len(FILES) > 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_mistake_is_told_with_file_key_and_expectation(path: Path, tmp_path: Path) -> None:
    said = said_faults(path)
    assert said, f"{path} says no fault"
    # A copy of its own: a tokens file has to be closed to others, whatever the checkout made of it.
    copy = tmp_path / path.name
    shutil.copyfile(path, copy)
    copy.chmod(0o600)

    with pytest.raises(ConfigError) as raised:
        LOADERS[path.parent.name](copy)

    faults = raised.value.faults
    assert {fault.source for fault in faults} == {str(copy)}
    assert sorted(fault.key for fault in faults) == sorted(key for key, _ in said)
    for key, words in said:
        assert any(fault.key == key and words in fault.expected for fault in faults), (key, faults)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "tokens"], ids=lambda path: path.stem
)
def test_no_fault_of_a_tokens_file_shows_a_secret(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copyfile(path, copy)
    copy.chmod(0o600)
    with pytest.raises(ConfigError) as raised:
        load_tokens(copy)
    assert not re.search(r"secret|123456789", str(raised.value).replace(str(copy), ""))
