"""House rules about code that a person would otherwise have to repeat in every review.

Sizes, names and unfinished marks. Not covered: what ruff, mypy and import-linter already
say (`make lint types arch`), and whether a docstring is any good.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from tests.tidy import tree

FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 500
CODE = ("rgd", "sim", "tests", "bench", "examples", "proto", "observability")

#: Names that say nothing about what is inside.
BANNED_MODULES = frozenset({"common", "helper", "helpers", "manager", "misc", "util", "utils"})

# Written so that this file does not find itself.
UNFINISHED = r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|raise NotImplementedErro[r]"
SLEEP = re.compile(r"(?:time|asyncio)\.sleep\((?!0\)).*\)", re.DOTALL)
BARE_SKIP = r"pytest\.mark\.(?:flak[y]|ski[p]\b)"


def functions(name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree.parsed(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def sleeps(node: ast.AST) -> Iterator[ast.Call]:
    """Sleeps that wait for time to pass.

    Two are none: sleep(0), which only lets other tasks run, and one in a `while` that watches for
    what tells no event.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
            continue
        if isinstance(child, ast.Call) and SLEEP.fullmatch(ast.unparse(child)):
            yield child
        yield from sleeps(child)


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{name}:{node.lineno} {node.name}: {line_count(node)} lines"
        for name in tree.modules(*CODE)
        for node in functions(name)
        if line_count(node) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_no_module_outgrows_its_name() -> None:
    counts = {name: len(tree.text(name).splitlines()) for name in tree.modules(*CODE)}
    assert {name: count for name, count in counts.items() if count > MODULE_LINES_MAX} == {}


def test_no_module_is_called_after_nothing() -> None:
    folders_and_stems = (
        (name, {*PurePath(name).with_suffix("").parts} & BANNED_MODULES)
        for name in tree.modules(*CODE)
    )
    assert [name for name, banned in folders_and_stems if banned] == []


def test_nothing_is_left_unfinished() -> None:
    assert tree.matches(UNFINISHED, tree.text_files()) == []


def test_tests_wait_for_events() -> None:
    found = [
        f"{name}:{call.lineno}: {ast.unparse(call)}"
        for name in tree.modules("tests")
        for call in sleeps(tree.parsed(name))
    ]
    assert found == []


def test_no_test_is_skipped_for_good() -> None:
    assert tree.matches(BARE_SKIP, tree.modules("tests")) == []


@pytest.mark.parametrize("table", ["ignore = [", "[tool.ruff.lint.per-file-ignores]"])
def test_every_ignored_rule_carries_its_reason(table: str) -> None:
    _, _, after = tree.text("pyproject.toml").partition(f"\n{table}\n")
    section = after.partition("\n]\n" if table.startswith("ignore") else "\n# ---")[0]
    rules = [line.strip() for line in section.splitlines() if line.strip().endswith('",')]
    entries = [line.strip() for line in section.splitlines() if line.lstrip().startswith('"')]
    assert entries
    assert [line for line in rules if "#" not in line] == []


def test_every_pulsar_client_shares_the_one_log_of_its_process() -> None:
    """The first client decides where all later ones of the process write; a test of rgd's log would fail by order.

    An example is a process of its own.
    """
    strays = [
        f"{name}:{node.lineno}"
        for name in tree.modules(*(folder for folder in CODE if folder != "examples"))
        for node in ast.walk(tree.parsed(name))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "Client"
        and ast.unparse(node.func) == "pulsar.Client"
        and "logger=client_log()" not in [ast.unparse(word) for word in node.keywords]
    ]
    assert strays == []
