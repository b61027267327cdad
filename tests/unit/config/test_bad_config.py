"""Every mistake in tests/data/bad_config is told with file, line, key and what was expected, and no more.

A file says itself what is wrong with it: `# fault: KEY @LINE | the words that follow` for each fault. The
folder is walked, so a file cannot be forgotten; one that says nothing fails, and so does a fault that the
code knows and no file has. The wording of faults in the environment and in options is in test_load.
"""

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rgd.config.groups import load_groups
from rgd.config.load import load_settings
from rgd.config.tokens import load_tokens
from rgd.errors import ConfigError, Fault

FOLDER = Path(__file__).parents[2] / "data" / "bad_config"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
FAULT = re.compile(r"# fault:(?: (?P<key>[^@|]*?))?(?: @(?P<line>\d+))? \| (?P<words>.+)")

CONFIG = Path(__file__).parents[3] / "rgd" / "config"
#: Where faults of files are worded; settings have their words from their types (test_load).
WORDED_IN = ("document", "faults", "groups", "group_entries", "tokens")
#: Faults that no file in a tree can have, and where they are tested.
NO_FILE = {
    "expected a readable file": "test_document",
    "expected a file of at most": "test_document",
    "expected a file closed to others": "test_tokens",
    "expected at most {}, got {}": "test_tokens",
}

LOADERS: dict[str, Callable[[Path], object]] = {
    "groups": load_groups,
    "settings": lambda path: load_settings(path, {}, {}),
    "tokens": load_tokens,
}


def marked_faults(path: Path) -> list[tuple[str, int | None, str]]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [match for line in lines if (match := FAULT.fullmatch(line))]
    return [
        (match["key"] or "", int(match["line"]) if match["line"] else None, match["words"])
        for match in found
    ]


def told_faults(path: Path, folder: Path) -> tuple[Fault, ...]:
    """What loading says; of a copy, since a tokens file has to be closed to others whatever a checkout made of it."""
    copy = folder / path.name
    shutil.copyfile(path, copy)
    copy.chmod(0o600)
    with pytest.raises(ConfigError) as raised:
        LOADERS[path.parent.name](copy)
    assert {fault.source for fault in raised.value.faults} == {str(copy)}
    return raised.value.faults


def test_the_walk_finds_files_of_each_kind_and_no_others() -> None:
    assert {path.parent.name for path in FILES} == set(LOADERS)
    assert len(FILES) > 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_mistake_is_reported_with_file_key_and_expectation(path: Path, tmp_path: Path) -> None:
    marked = marked_faults(path)
    assert marked, f"{path} says no fault"

    faults = told_faults(path, tmp_path)

    assert sorted(fault.key for fault in faults) == sorted(key for key, _, _ in marked)
    for key, line, words in marked:
        assert any(
            (fault.key, fault.line) == (key, line) and words in fault.expected for fault in faults
        ), (key, line, faults)


def worded() -> dict[str, re.Pattern[str]]:
    """Every sentence about a fault in the code that reads files, with whatever stands in its gaps."""
    found = {}
    for module in WORDED_IN:
        tree = ast.parse((CONFIG / f"{module}.py").read_text(encoding="utf-8"))
        inside = {
            part
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [
                str(part.value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
                else None
                for part in parts
            ]
            if (
                node not in inside
                and texts
                and (texts[0] or "").startswith(("expected ", "unknown "))
            ):
                sentence = "".join(text if text is not None else "{}" for text in texts)
                found[sentence] = re.compile(
                    "".join(re.escape(text) if text is not None else ".*" for text in texts)
                )
    return found


def test_every_fault_that_the_code_knows_has_a_file(tmp_path: Path) -> None:
    expectations = [
        fault.expected
        for path in FILES
        if path.parent.name != "settings"
        for fault in told_faults(path, tmp_path)
    ]
    sentences = worded()
    assert len(sentences) > 20
    without = [
        sentence
        for sentence, pattern in sentences.items()
        if not any(pattern.search(expected) for expected in expectations)
        and not sentence.startswith(tuple(NO_FILE))
    ]
    assert without == []


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "tokens"], ids=lambda path: path.stem
)
def test_no_fault_of_a_tokens_file_shows_a_secret(path: Path, tmp_path: Path) -> None:
    for fault in told_faults(path, tmp_path):
        assert not re.search(r"secret|123456789", f"{fault.key} {fault.expected}")
