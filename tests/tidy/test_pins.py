"""What is installed: every dependency declared, every declared one pinned, nothing pinned by address.

Not covered: whether the pins install on another Python or platform than this one.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy import tree

#: Folders that only people who develop rgd use: they may import the extras too.
DEVELOPMENT = ("tests", "sim", "bench", "proto", "observability")
OURS = frozenset({"rgd", "sim", "tests", "bench", "observability"})
#: In the standard library of a Python later than the oldest that we run on.
LATER_STDLIB = frozenset({"compression"})
#: rgd's own parts that are installed only where they are wanted.
EXTRAS_OF_RGD = ("embedded", "tier", "report", "fastapi")
#: What `make setup` installs first: it builds without isolation, so that builds are pinned too
#: (setuptools and wheel are for PySpark, which comes as source; pip is what installs the rest).
BUILD_TOOLS = frozenset({"pip", "hatchling", "editables", "setuptools", "wheel"})


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(tree.text("pyproject.toml"))["project"]
    return table


def pins() -> list[str]:
    lines = tree.text("constraints.txt").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def declared(*extras: str) -> set[str]:
    """The distributions that a part of pyproject.toml asks for by name."""
    table = project()
    wanted = list(table["dependencies"])
    for extra in extras:
        wanted += table["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(line).name) for line in wanted}


def closure(names: set[str]) -> Iterator[str]:
    """These distributions and all that they need here."""
    seen: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        yield name
        for line in metadata.requires(name) or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting |= {canonicalize_name(need.name)} - seen


def imported(*folders: str) -> dict[str, str]:
    """Top-level name of every foreign import -> one module that has it."""
    found: dict[str, str] = {}
    for name in tree.modules(*folders):
        for node in ast.walk(tree.parsed(name)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            found |= {full.partition(".")[0]: name for full in names}
    known = sys.stdlib_module_names | LATER_STDLIB | OURS
    return {top: at for top, at in found.items() if top not in known}


def undeclared(folders: tuple[str, ...], extras: tuple[str, ...]) -> list[str]:
    homes = metadata.packages_distributions()
    wanted = declared(*extras)
    return [
        f"{top} (imported by {at})"
        for top, at in sorted(imported(*folders).items())
        if not wanted & {canonicalize_name(home) for home in homes.get(top, ())}
    ]


def test_what_rgd_imports_is_declared() -> None:
    assert undeclared(("rgd",), EXTRAS_OF_RGD) == []


def test_what_development_imports_is_declared() -> None:
    everything = tuple(project()["optional-dependencies"].keys() - {"dev"})
    assert undeclared(DEVELOPMENT, everything) == []


def test_every_dependency_is_pinned() -> None:
    extras = tuple(project()["optional-dependencies"].keys() - {"dev"})
    asked = declared(*extras) | BUILD_TOOLS
    if not _has_embedded_build():
        asked -= declared("embedded") - declared()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in pins()}
    assert sorted(set(closure(asked)) - pinned) == []


def _has_embedded_build() -> bool:
    lines = project()["optional-dependencies"]["embedded"]
    markers = [Requirement(line).marker for line in lines]
    return all(marker is None or marker.evaluate() for marker in markers)


def test_pins_are_exact_versions_without_an_address() -> None:
    exact = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+")
    assert [line for line in pins() if not exact.fullmatch(line)] == []


def test_pins_are_sorted() -> None:
    assert pins() == sorted(pins(), key=str.lower)


@pytest.mark.parametrize("extra", ["embedded", "tier"])
def test_the_daemon_installs_without_spark(extra: str) -> None:
    heavy = {"pyspark", "pyarrow", "pandas", "matplotlib"}
    assert heavy & set(closure(declared(extra))) == set()
