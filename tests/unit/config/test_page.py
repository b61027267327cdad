"""The examples and figures in docs/configuration.md are true; tests/tidy/test_pages.py has its tables.

Not covered: whether the rest of its prose is right.
"""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rgd.config import document, tokens
from rgd.config.groups import TOP_KEYS
from rgd.config.tokens import load_tokens
from rgd.config.values import show_size
from rgd.core.bounds import BOUNDS
from rgd.core.policies.model import Limits
from rgd.ports.door import TOKENS_MAX

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def example(heading: str) -> str:
    found = re.search(rf"## {heading}\n\n<!-- [^\n]* -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize(
    "words",
    [
        f"{show_size(document.FILE_BYTES_MAX)}, {document.NODES_MAX:,} values with aliases unfolded, "
        f"{document.DEPTH_MAX} levels",
        f"A token has {tokens.TOKEN_CHARS_MIN} to {tokens.TOKEN_CHARS_MAX} characters",
        f"at most {TOKENS_MAX}.",
        f"Topics beyond {BOUNDS.buckets.split_topics_max:,} share one part",
    ],
)
def test_the_figures_in_the_prose_are_those_of_the_code(words: str) -> None:
    assert words in " ".join(PAGE.split())


def test_the_example_of_a_groups_file_has_every_section() -> None:
    text = example("The groups file")
    for key in (*TOP_KEYS, *(field.name for field in fields(Limits)), "size", "age"):
        assert re.search(rf"^ *{key}:", text, re.MULTILINE), key


def test_the_example_of_a_tokens_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(example("The tokens file"))
    path.chmod(0o600)
    assert {grant.name for grant in load_tokens(path).values()} == {"gateway", "grafana"}
