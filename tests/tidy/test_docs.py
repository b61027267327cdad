"""Every page can be found: the README names it, links lead somewhere, the list of decisions is whole.

Not covered: whether a page is true.
"""

import re
from pathlib import Path

from sim.scenarios import SCENARIOS
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


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `head`, or two\n[x](#a-head-or-two) [y](#b) [z](gone.md) [w](https://a.b/)\n"
    )
    assert dead_links(page) == ["page.md: #b", "page.md: gone.md"]


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
