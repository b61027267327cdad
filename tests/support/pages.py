"""The blocks of documentation pages, each with the tag that says how it is run.

Law: a tag is one HTML comment, which readers do not see, on the line before the block's fence:

    <!-- run -->            its commands (bash), or its program (Python), end with status 0
    <!-- run: exit 2 -->    with another status
    <!-- serve: COMMAND --> its commands go on beside the page; the page waits until COMMAND succeeds
    <!-- file: PATH -->     it is the content of a file, which later blocks use
    <!-- output -->         it is what the block before printed; `...` stands for anything
    <!-- output: numbers differ -->   the same, and each number for any number
    <!-- tested: PATH -->   that test reads it from the page, and runs it
    <!-- skip: REASON -->   nothing runs it

Two comments stand by themselves: `<!-- sh` up to `-->` holds commands that the page does not show (what a reader
has done before, what checks a file), and `<!-- needs: pulsar -->` or `spark` names a component that the page's blocks use.
Who runs them: tests/e2e/test_docs_run.py; who counts them: tests/tidy/test_docs.py.
"""

import json
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("run", "serve", "file", "output", "tested", "skip")

_FENCE = re.compile(
    r"(?:^ *<!-- (?P<kind>\w+)(?:: (?P<argument>[^\n]*?))? -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_HIDDEN = re.compile(r"^ *<!-- sh\n(?P<text>.*?)^ *-->$", re.DOTALL | re.MULTILINE)
_NEEDS = re.compile(r"^<!-- needs: (\w+) -->$", re.MULTILINE)
#: Four spaces after an empty line, outside of a list: the other way to write a block, which has no place for a tag.
_INDENTED = re.compile(r"\n\n(?: {4}|\t)\S.*", re.MULTILINE)
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"


@dataclass(frozen=True)
class Block:
    """One block of a page, or commands that it does not show (kind `sh`).

    Attributes:
        line: of its fence, from 1.
        kind: of `KINDS`; empty where the block has no tag.
    """

    line: int
    kind: str
    argument: str
    language: str
    text: str


def pages() -> list[Path]:
    """The pages whose blocks are run: README.md and docs/, decisions apart."""
    below = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in below if "decisions" not in page.parts)]


def blocks(text: str) -> list[Block]:
    """The blocks of a page in order, and the commands that it does not show."""
    found = []
    for match in [*_FENCE.finditer(text), *_HIDDEN.finditer(text)]:
        has = match.groupdict()
        found.append(
            Block(
                line=text.count("\n", 0, match.start("text")),
                kind=(has.get("kind") or "") if "kind" in has else "sh",
                argument=has.get("argument") or "",
                language=has.get("language") or "",
                text=textwrap.dedent(match["text"]),
            )
        )
    return sorted(found, key=lambda block: block.line)


def needs(text: str) -> list[str]:
    """The components that a page's blocks use."""
    return _NEEDS.findall(text)


def indented(text: str) -> list[str]:
    """Blocks that are indented instead of fenced, which have no place for a tag."""
    plain = _HIDDEN.sub("", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE))
    return [line.strip() for line in _INDENTED.findall(plain)]


def fits(shown: Block, printed: str) -> bool:
    """Whether a block shows what was printed."""
    any_number = shown.argument == "numbers differ"
    if shown.language == "json":
        return _fits_json(json.loads(shown.text), json.loads(printed), any_number)
    pattern = r"\s+".join(_word(word, any_number) for word in shown.text.split())
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def _word(word: str, any_number: bool) -> str:
    pieces = re.split(rf"(\.\.\.|{_NUMBER})" if any_number else r"(\.\.\.)", word)
    return "".join(
        ".*" if piece == "..." else _NUMBER if place % 2 else re.escape(piece)
        for place, piece in enumerate(pieces)
    )


def _fits_json(shown: object, printed: object, any_number: bool) -> bool:
    """Objects have the same keys, lists the same length; the text `...` stands for anything."""
    if shown == "...":
        return True
    if isinstance(shown, dict) and isinstance(printed, dict):
        return shown.keys() == printed.keys() and all(
            _fits_json(value, printed[key], any_number) for key, value in shown.items()
        )
    if isinstance(shown, list) and isinstance(printed, list):
        return len(shown) == len(printed) and all(
            _fits_json(*pair, any_number) for pair in zip(shown, printed, strict=True)
        )
    if isinstance(shown, str) and isinstance(printed, str):
        return re.fullmatch(_word(shown, any_number), printed, re.DOTALL) is not None
    if any_number and type(shown) is not bool and isinstance(shown, int | float):
        return type(printed) is not bool and isinstance(printed, int | float)
    return type(shown) is type(printed) and shown == printed
