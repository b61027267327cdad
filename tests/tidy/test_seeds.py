"""docs/seeds.md names tests and metrics that exist, and no row is without one.

Modules, files and decisions on the page are found by test_names.py and test_docs.py. Not covered: whether a
test holds its sentence; that was read.
"""

import ast
import re
from functools import cache
from pathlib import Path

from tests.tidy import tree

PAGE = "docs/seeds.md"

_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
_METRIC = re.compile(r"`((?:pulsar|rgd)_[a-z_]+)`")
#: Generated from the declarations.
_METRICS = "docs/metrics.md"
#: What the last cell of a row may say in place of a test.
_WITHOUT = ("measured, not held: [", "not met: ")


def rows() -> list[list[str]]:
    """The cells of each row that is a statement."""
    lines = re.findall(r"^\| (.+) \|$", tree.text(PAGE), re.MULTILINE)
    cells = [line.split(" | ") for line in lines]
    return [row for row in cells if row[0] != "the proposal says" and not row[0].startswith("---")]


@cache
def defined_in(name: str) -> frozenset[str]:
    """The tests of a module: `test_x`, and `TestX::test_y` of a class; none if there is no such file."""
    if not Path(tree.ROOT / name).is_file():
        return frozenset()
    return frozenset(_tests_of(tree.parsed(name).body, ""))


def _tests_of(body: list[ast.stmt], prefix: str) -> list[str]:
    found = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            found += _tests_of(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [prefix + node.name] * node.name.startswith("test_")
    return found


def missing_tests(text: str) -> list[str]:
    named = _TEST.findall(text)
    return [f"{name}::{test}" for name, test in named if test not in defined_in(name)]


def test_every_test_that_is_named_exists() -> None:
    assert missing_tests(tree.text(PAGE)) == []


def test_every_statement_is_held_by_a_test_or_says_why_not() -> None:
    assert len(rows()) > 100
    wrong = [row for row in rows() if len(row) != 3]
    assert wrong == []
    held = [bool(_TEST.search(held)) or held.startswith(_WITHOUT) for _, _, held in rows()]
    assert [row[0] for row, is_held in zip(rows(), held, strict=True) if not is_held] == []


def test_every_metric_that_is_named_is_declared() -> None:
    metrics = tree.text(_METRICS)
    named = set(_METRIC.findall(tree.text(PAGE)))
    assert named
    assert [name for name in sorted(named) if f"| `{name}` |" not in metrics] == []
