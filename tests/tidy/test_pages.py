"""The tables of docs/ that declarations say are as the declarations are now, and each stands on a page.

Not covered: the words around them.
"""

import re

import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.throttled import IDLE_NS
from rgd.core.units import NS_PER_S
from tests.tidy import pages


@pytest.mark.parametrize("page", pages.PAGES)
def test_the_committed_page_is_fresh(page: str) -> None:
    text = pages.path_of(page).read_text(encoding="utf-8")
    assert text == pages.written(text), "run `make docs`"


def test_every_table_stands_on_a_page() -> None:
    texts = "".join(pages.path_of(page).read_text(encoding="utf-8") for page in pages.PAGES)
    assert sorted(re.findall(r"<!-- generated: (\w+) -->", texts)) == sorted(pages.TABLES)
    assert texts.count("<!-- end -->") == len(pages.TABLES)


def test_the_page_of_metrics_says_how_many_subscriptions_are_shown_and_how_long() -> None:
    text = " ".join(pages.path_of("metrics").read_text(encoding="utf-8").split())
    hours = IDLE_NS // NS_PER_S // 3600
    assert f"{BOUNDS.buckets.throttled_max:,} subscriptions have series of their own" in text
    assert f"start at 0 again {hours} hour after its last throttled request" in text
