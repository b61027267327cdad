"""How many lines of code each package has, beside its budget: what `make size` prints.

Code is a cost to whoever reads it, so it has a budget (size_budget.toml), which only falls; raising one needs a
decision record that says what the lines buy. A line counts where a token of code stands on it: blank lines,
comments and docstrings are free, because leaving them out would be the cheapest way to save lines. Generated
modules do not count. Longer lines save nothing either: ruff's format decides how a statement is broken.
"""

import ast
import io
import sys
import tokenize
import tomllib

from tests.tidy import tree

BUDGET = "tests/tidy/size_budget.toml"

_NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """The lines of a module on which code stands: neither blank, comment nor docstring."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - _docstring_lines(ast.parse(source)))


def _docstring_lines(module: ast.Module) -> set[int]:
    strings = [
        node.body[0]
        for node in ast.walk(module)
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    ]
    return {line for text in strings for line in range(text.lineno, (text.end_lineno or 0) + 1)}


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
