"""Every page can be found: the README names it, links lead somewhere, the list of decisions is whole.

Not covered: whether a page is true.
"""

import re
from pathlib import Path

from sim.scenarios import SCENARIOS
from tests.support import pages as blocks_of
from tests.tidy import tree

DOCS = tree.ROOT / "docs"
README = tree.ROOT / "README.md"

_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    return [tree.ROOT / name for name in tree.files() if name.endswith(".md")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in texts}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(f"{page.name}: {link}")
    return dead


def test_the_readme_names_every_page() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"docs/{page.name}" not in text] == []


def test_every_link_leads_somewhere() -> None:
    assert [dead for page in pages() for dead in dead_links(page)] == []


def blocks() -> list[tuple[str, blocks_of.Block]]:
    """Every block of README and docs, with its page."""
    return [
        (page.name, block)
        for page in blocks_of.pages()
        for block in blocks_of.blocks(page.read_text(encoding="utf-8"))
        if block.kind != "sh"
    ]


def test_every_block_says_how_it_is_run() -> None:
    untagged = [
        f"{page}:{block.line}" for page, block in blocks() if block.kind not in blocks_of.KINDS
    ]
    assert untagged == [], "write one of the tags of tests/support/pages.py above the fence"
    texts = {page.name: page.read_text(encoding="utf-8") for page in blocks_of.pages()}
    indented = {name: blocks_of.indented(text) for name, text in texts.items()}
    assert {name: found for name, found in indented.items() if found} == {}, "fence it, and tag it"


def test_of_twenty_blocks_nineteen_are_run_and_others_say_why_not() -> None:
    skipped = [block for _, block in blocks() if block.kind == "skip"]
    assert len(skipped) <= 0.05 * len(blocks()), [block.argument for block in skipped]
    assert all(len(block.argument) > 10 for block in skipped)


def test_a_block_that_another_test_runs_is_read_from_the_page_there() -> None:
    told = [(page, block.argument) for page, block in blocks() if block.kind == "tested"]
    assert [where for where in told if where[0] not in tree.text(where[1])] == []


def test_the_readme_says_how_many_scenarios_there_are() -> None:
    assert f"# {len(SCENARIOS)} scenarios" in tree.text("README.md")


def test_the_list_of_decisions_has_each_once_in_order_by_its_title() -> None:
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$",
        (DOCS / "decisions" / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    found = []
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        number, _, title = path.read_text(encoding="utf-8").split("\n", 1)[0][2:].partition(". ")
        found.append((number, title, path.name))
    assert rows == found
