"""Code has a budget. Not covered: whether the code within it is any good."""

from tests.support.cases import cases
from tests.tidy import size, tree


def test_no_package_is_larger_than_its_budget() -> None:
    """What to do where it fails: take lines out, or raise the budget with a decision record."""
    allowed = size.budgets()
    assert {name: count for name, count in size.sizes().items() if count > allowed[name]} == {}


def test_every_package_has_a_budget() -> None:
    """So that new code cannot hide in a folder that nobody counts."""
    uncounted = [
        name
        for name in tree.modules("rgd", "sim", "tests", "bench", "proto", "examples")
        if not any(name.startswith(f"{folder}/") for folder in size.budgets())
    ]
    assert uncounted == []


@cases(
    "source, count",
    {
        "docstring-blank-comment": ('"""Why.\n\nMore.\n"""\n\nx = 1  # one\n', 1),
        "statement-in-lines": ('def f():\n    """Why."""\n    return (\n        1\n    )\n', 4),
        "a-string-that-is-no-docstring": ('x = """a\nb\n"""\n', 3),
        "comment-alone": ("# why\n\n", 0),
    },
)
def test_only_lines_of_code_count(source: str, count: int) -> None:
    assert size.code_lines(source) == count
