"""Benchmarks: `make bench` finds each, each can speak JSON, and its figures are explained.

Not covered: that they run (they take seconds each and measure, which no test should judge), and that
every figure they print is in the table.
"""

import re
import sys
from pathlib import PurePath

import pytest

from tests.tidy import tree

SCRIPTS = tree.modules("bench")


def test_make_runs_every_script() -> None:
    assert "for script in bench/*.py;" in tree.text("Makefile")
    assert {str(PurePath(name).parent) for name in SCRIPTS} == {"bench"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_how_it_is_called_and_takes_json(name: str) -> None:
    assert f"\n    python {name} [--json]" in tree.text(name)
    # Its own, or the one that bench/harness.py gives everybody.
    says = ('add_argument("--json"', "from bench.harness import")
    assert any(words in tree.text(name) for words in says)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_hides_no_library(name: str) -> None:
    # Its folder comes first on the path: a script `http` would be everybody's `http`.
    assert PurePath(name).stem not in sys.stdlib_module_names


def test_the_table_names_every_script_and_no_other() -> None:
    named = re.findall(r"^\| `(\w+\.py)` \|", tree.text("bench/README.md"), re.MULTILINE)
    assert sorted(f"bench/{name}" for name in named) == list(SCRIPTS)
