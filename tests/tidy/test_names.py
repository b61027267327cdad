"""What prose names exists: modules, what they define, files, tests. A module that moved takes its mentions along.

Prose is every page, and the docstrings and comments of every module. The changelog is history and may
name what is gone. Not covered: a module that is named by its last part alone (`rounds`), settings and metrics
(their tables are generated).
"""

import ast
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tests.tidy import tree

_CODE = ("rgd", "sim", "tests", "bench", "examples", "proto")

# Found by their quotes, because parsing every module takes seconds.
_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
_COMMENT = re.compile(r"#.*")

_DOTTED = re.compile(r"(?<![\w./\-])(?:rgd|sim|bench)(?:\.[A-Za-z_]\w*)+")
#: Modules named without `rgd.`, in backticks: `core.buckets.limiter`.
_BELOW_RGD = re.compile(r"`((?:adapters|app|core|ports|views|wire)(?:\.[a-z_]\w*)+)`")
_PATH = re.compile(r"(?<![\w./\-])(?:rgd|sim|tests|bench|docs|examples|k8s|proto)/[\w./*\-]*\w")
_TEST = re.compile(r"(?<![\w./])test_\w+\.py\b")
_FILE_IN_BACKTICKS = re.compile(r"`([\w/]+\.py)`")
_LOGGER = re.compile(r"get_?[lL]ogger\(\"([\w.]+)\"\)")

#: What looks like a module and is a file, a name in a cluster, a package of protobuf, or a logger (these are found in the code).
_FILE_ENDINGS = (".py", ".yaml", ".sock", ".proto", ".svc")
_PROTO_PACKAGE = "rgd.v1"

#: A script's name that stands for any of them.
_PLACEHOLDERS = frozenset({"bench/NAME.py"})


def prose() -> dict[str, str]:
    """The text that people read of each file: a page whole, of a module its docstrings and comments."""
    pages = (name for name in tree.text_files() if name.endswith(".md") and name != "CHANGELOG.md")
    found = {name: tree.text(name) for name in pages}
    return found | {name: _prose_of_module(tree.text(name)) for name in tree.modules(*_CODE)}


def _prose_of_module(text: str) -> str:
    return "\n".join(_DOCSTRING.findall(text) + _COMMENT.findall(text))


@cache
def _files() -> frozenset[str]:
    return frozenset(tree.files())


@cache
def _folders() -> frozenset[str]:
    return frozenset(str(parent) for name in tree.files() for parent in Path(name).parents)


@cache
def _loggers() -> frozenset[str]:
    return frozenset(
        name for module in tree.modules("rgd") for name in _LOGGER.findall(tree.text(module))
    )


@cache
def _defined(module: str) -> frozenset[str]:
    """Every name that a module binds or imports, methods and fields included."""
    names: set[str] = set()
    for node in ast.walk(tree.parsed(module)):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name)
            case _:
                pass
    return frozenset(names)


def is_dotted_name(dotted: str) -> bool:
    """Whether it is a package, a module, or a name that its module has."""
    if dotted.endswith(_FILE_ENDINGS) or dotted == _PROTO_PACKAGE or dotted in _loggers():
        return True
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length])
        for module in (f"{path}.py", f"{path}/__init__.py"):
            if module in _files():
                return all(part in _defined(module) for part in parts[length:])
    return False


@cache
def is_path(path: str) -> bool:
    """Whether it is a file, with its ending or without, a folder, a pattern, or a decision by its number."""
    if (
        path in _PLACEHOLDERS
        or f"proto/{path}" in _files()
        or path in _folders()
        or path in _files()
        or f"{path}.py" in _files()
    ):
        return True
    return any(fnmatch(name, path) or name.startswith(f"{path}-") for name in _files())


@cache
def _ends_a_path(ending: str) -> bool:
    return any(f"/{name}".endswith(f"/{ending}") for name in _files())


def missing(text: str) -> list[str]:
    """What a text names and the tree does not have."""
    return [
        *(name for name in _DOTTED.findall(text) if not is_dotted_name(name)),
        *(name for name in _BELOW_RGD.findall(text) if not is_dotted_name(f"rgd.{name}")),
        *(path for path in _PATH.findall(text) if not is_path(path)),
        *(name for name in _TEST.findall(text) if not _ends_a_path(name)),
        *(name for name in _FILE_IN_BACKTICKS.findall(text) if not _ends_a_path(name)),
    ]


def test_what_prose_names_exists() -> None:
    assert {name: gone for name, text in prose().items() if (gone := missing(text))} == {}
