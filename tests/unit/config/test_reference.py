"""docs/configuration.md says what the models say, and its examples load.

Not covered: whether the prose around the tables is right.
"""

import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from rgd.config.groups import TOP_KEYS
from rgd.config.load import FIELDS
from rgd.config.reference import page
from rgd.config.tokens import load_tokens
from rgd.core.policies.model import Limits

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def example(heading: str) -> str:
    found = re.search(rf"## {heading}\n\n<!-- [^\n]* -->\n```yaml\n(.*?)```", page(), re.DOTALL)
    assert found
    return found[1]


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_setting_has_its_row() -> None:
    rows = re.findall(r"^\| `([A-Za-z_.]+)` \|", page(), re.MULTILINE)
    assert rows == list(FIELDS)


def test_no_placeholder_is_left() -> None:
    assert not re.search(r"FILE_LIMITS|SMALL_FILE|TOPICS_MAX|TOKENS?_(?:CHARS|MAX)", page())


def test_the_example_of_a_groups_file_has_every_section() -> None:
    text = example("The groups file")
    for key in (*TOP_KEYS, *(field.name for field in fields(Limits)), "size", "age"):
        assert re.search(rf"^ *{key}:", text, re.MULTILINE), key


def test_the_example_of_a_tokens_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(example("The tokens file"))
    path.chmod(0o600)
    assert {grant.name for grant in load_tokens(path).values()} == {"gateway", "grafana"}


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_module_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("rgd.config.reference", run_name="__main__")
    assert capsys.readouterr().out == page()
