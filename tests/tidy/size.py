"""How many lines of code each package has, beside its budget: what `make size` prints.

Code is a cost to whoever reads it, so it has a budget (size_budget.toml), which only falls; raising one needs a
decision record that says what the lines buy. A line counts where a token of code stands on it: blank lines,
comments and docstrings are free, because leaving them out would be the cheapest way to save lines. Generated
modules do not count. Longer lines save nothing either: ruff's format decides how a statement is broken.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

from tests.tidy import tree

BUDGET = "tests/tidy/size_budget.toml"

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: A comment, or a string. Python's tokenizer takes ten times as long.
_PIECE = re.compile(
    r"""#[^\n]*|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)


def code_lines(source: str) -> int:
    """The lines of a module on which code stands: neither blank, comment nor docstring."""
    plain = _PIECE.sub(_without_text, source)
    lines = {number for number, line in enumerate(plain.splitlines(), start=1) if line.strip()}
    return len(lines - set(_docstring_lines(ast.parse(source))))


def _without_text(piece: re.Match[str]) -> str:
    """Nothing in place of a comment, and something on each line of a string."""
    return "" if piece[0].startswith("#") else "\n".join("x" * (piece[0].count("\n") + 1))


def _docstring_lines(block: ast.AST) -> Iterator[int]:
    if isinstance(block, _DOCUMENTED) and ast.get_docstring(block, clean=False) is not None:
        yield from range(block.body[0].lineno, (block.body[0].end_lineno or 0) + 1)
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _docstring_lines(node)


def budgets() -> dict[str, int]:
    """The most lines of code that each package may have, by its folder."""
    return {str(folder): int(most) for folder, most in tomllib.loads(tree.text(BUDGET)).items()}


def sizes() -> dict[str, int]:
    """The lines of code of each package that has a budget.

    A folder counts with all that is below it, but for what has a budget of its own.
    """
    folders = sorted(budgets(), key=len, reverse=True)
    found = dict.fromkeys(budgets(), 0)
    for name in tree.modules(*{folder.partition("/")[0] for folder in folders}):
        owner = next((folder for folder in folders if name.startswith(f"{folder}/")), None)
        if owner is not None:
            found[owner] += code_lines(tree.text(name))
    return found


def main() -> None:
    """Print a line for each package: code, budget, what is left."""
    allowed = budgets()
    sys.stdout.write(f"{'package':<14}{'code':>8}{'budget':>8}{'left':>7}\n")
    for folder, count in sizes().items():
        left = allowed[folder] - count
        sys.stdout.write(f"{folder:<14}{count:>8}{allowed[folder]:>8}{left:>7}\n")


if __name__ == "__main__":
    main()
