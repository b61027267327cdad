"""The page stands alone, says everything in words too, and trusts no name.

Not covered: how it looks; tests/integration/spark lets a browser render it.
"""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rgd.analysis import charts
from rgd.analysis.page import Section, render, render_group
from rgd.analysis.tenants import by_tenant
from rgd.analysis.window_tables import read, write
from rgd.analysis.windows import Joined
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of
from tests.unit.analysis.conftest import ReadLogs

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert('x')</script>&\"https://example.org"


def page_of(
    folder: Path,
    read_logs: ReadLogs,
    *,
    broker: str = "broker",
    brokers: int = 2,
    quota: float | None = 100,
    lost: int = 0,
) -> str:
    for number in range(brokers):
        maker = LogMaker(folder / f"{number}", f"{broker}-{number:02}")
        usage = Usage("gold", 50, 90, quota=quota, share=quota and quota / brokers)
        maker.rounds(5, usage)
        maker.lose(lost, usage)
        maker.rounds(5, Usage("gold", 10, 10, quota=quota, share=quota and quota / brokers))
        maker.close()
    logs = read_logs(folder)
    return render([logs.found()], logs.facts(), [section_of(logs)])


def drawings(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


class Outline(HTMLParser):
    """Tags with their attributes, and whether they are nested as they should be."""

    VOID = frozenset({"meta", "link", "img", "br", "hr", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if "id" in attrs]


def test_the_page_refers_to_nothing_outside(tmp_path: Path, read_logs: ReadLogs) -> None:
    page = page_of(tmp_path, read_logs)

    outline = Outline(page)
    tags = {tag for tag, _ in outline.tags}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base"}
    addresses = [
        attrs[name] or ""
        for _, attrs in outline.tags
        for name in ("href", "src", "xlink:href", "data", "action")
        if name in attrs
    ]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert re.findall(r"https?:|//[a-z]|@import|url\((?!#)", page) == []


def test_every_reference_within_the_page_has_one_target(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    outline = Outline(page_of(tmp_path, read_logs))

    ids = outline.ids()
    assert len(ids) == len(set(ids))
    for _, attrs in outline.tags:
        named = " ".join(
            str(attrs.get(name) or "")
            for name in ("href", "aria-labelledby", "clip-path", "fill", "style")
        )
        for target in re.findall(r"#([\w-]+)", named):
            assert target in ids
        for target in (attrs.get("aria-labelledby") or "").split():
            assert target in ids


@pytest.mark.parametrize("quota", [100.0, None])
def test_every_drawing_parses_and_is_titled_described_and_coloured_by_the_page(
    tmp_path: Path, read_logs: ReadLogs, quota: float | None
) -> None:
    page = page_of(tmp_path, read_logs, quota=quota)

    (drawing,) = drawings(page)
    assert drawing.attrib["role"] == "img"
    texts = [text.strip() for text in drawing.itertext() if text.strip()]
    assert texts[0] == "gold, publish, messages over time"
    assert "wanted" in texts[1]
    assert any("messages/s" in text for text in texts)
    assert any("seconds since 2026-11-21 04:11:40 UTC" in text for text in texts)
    colours = re.findall(r"(?:fill|stroke): (?!none)([^;\"]+)", ET.tostring(drawing, "unicode"))
    assert {colour for colour in colours if not colour.startswith("var(--")} == set()


def test_every_colour_of_a_drawing_has_a_value_for_light_and_for_dark(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    page = page_of(tmp_path, read_logs, brokers=9)

    light, dark = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    for name in set(re.findall(r"var\((--[\w-]+)\)", page)):
        assert f"{name}:" in light, name
        assert f"{name}:" in dark, name


def section_of(logs: Any, file: str | None = None) -> Section:
    """The section of the group gold."""
    table = write(Joined.alone(logs.windows()), "messages", logs.fairness())
    return Section.of(logs.found(), table, logs.facts(), file)


def uneven(folder: Path, *, admitted: int, broker: str = "poor") -> None:
    """Two brokers, of which one gets no more than `admitted` of its 50 in the second half of 20 s."""
    for name, got in ((broker, admitted), ("hog", 100 - admitted)):
        maker = LogMaker(folder / f"{got}", name)
        maker.rounds(10, Usage("gold", 50, 50, quota=100, share=50))
        maker.rounds(10, Usage("gold", got, 90, quota=100, share=50))
        maker.close()


def heat_of(page: str) -> str:
    """The one row of when it was not fair."""
    (row,) = re.findall(r'id="when".*?<tbody>\n(<tr>.*?</tr>)', page, re.DOTALL)
    return str(row)


def test_when_brokers_were_starved_is_drawn_and_said(tmp_path: Path, read_logs: ReadLogs) -> None:
    uneven(tmp_path, admitted=10, broker=HOSTILE)
    logs = read_logs(tmp_path)

    row = heat_of(render([logs.found()], logs.facts(), [section_of(logs)]))

    # The log has 19 s; the last ten.
    assert re.findall(r'<rect x="(\d+)" width="(\d+)"', row) == [("473", "526")]
    assert "&lt;script&gt;" in row
    assert "04:11:50 to 2026-11-21 04:12:00" in row
    assert "Lowest ratio over time" not in page_of(tmp_path / "fair", read_logs)


def test_unfair_times_without_a_starved_broker_are_shaded(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    uneven(tmp_path, admitted=30)
    logs = read_logs(tmp_path)

    row = heat_of(render([logs.found()], logs.facts(), [section_of(logs)]))

    # 30 of 50, in the last ten of 19 cells.
    shades = re.findall(
        r'<rect class="low" x="(\d+)" width="(\d+)" height="10" opacity="([.\d]+)"', row
    )
    assert shades == [("473", "526", "0.4")]
    assert row.count("<rect") == 1
    assert 'class="bad"' not in row


def test_a_group_with_a_file_of_its_own_is_linked_and_drawn_there(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    uneven(tmp_path, admitted=30)
    logs = read_logs(tmp_path)
    section = section_of(logs, "groups/025.html")

    page = render([logs.found()], logs.facts(), [section])
    own = render_group(section, logs.facts())

    assert '<a href="groups/025.html">gold</a>' in page
    assert 'role="img"' not in page
    assert heat_of(page)
    (drawing,) = drawings(own)
    assert drawing.attrib["role"] == "img"
    hrefs = [attrs["href"] for _, attrs in Outline(own).tags if "href" in attrs]
    assert hrefs == ["../report.html"]


def test_names_from_the_log_are_only_text(tmp_path: Path, read_logs: ReadLogs) -> None:
    page = page_of(tmp_path, read_logs, broker=HOSTILE)

    assert page.count("<script") == 1
    assert "&lt;script&gt;" in page
    assert {name for _, attrs in Outline(page).tags for name in attrs if "example" in name} == set()


def test_tenants_are_listed_worst_first_with_what_refused_them(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    uneven(tmp_path, admitted=30)
    logs = read_logs(tmp_path)
    levels = {"topic": 30, "resource_group": 90}
    attached = {"tenant:acme": ["gold"], f"tenant:z{HOSTILE}": ["gold", "tin"]}
    starved = logs.found() | {"group": "tin", "starved_s": 9.0, "refused_by": levels}
    findings = [logs.found(), starved]

    page = render(findings, logs.facts(), [], by_tenant(findings, attached))

    (body,) = re.findall(r'id="tenants".*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    worst = body.strip().partition("\n")[0]
    assert "&lt;script&gt;" in worst
    assert ">gold, tin (shared with acme)<" in worst
    assert 'class="bad" data-v="9">9 s<' in worst
    assert "resource group 75 %, topic 25 %" in worst
    assert "Refused by level, retries too: resource group 75 %, topic 25 % (publish, mess" in page


def test_the_legend_names_who_has_a_colour_and_counts_the_rest(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    page = page_of(tmp_path, read_logs, brokers=11)

    (legend,) = re.findall(r'<ul class="legend">(.*?)</ul>', page, re.DOTALL)
    assert len(re.findall(r"broker-\d\d", legend)) == charts.COLOURS
    assert "3 other brokers" in legend


def test_missing_records_are_hatched_and_steps_marked(tmp_path: Path, read_logs: ReadLogs) -> None:
    page = page_of(tmp_path, read_logs, lost=3)

    assert "records missing, known from totals" in page
    assert ">demand</text>" in page
    step = ">2026-11-21 04:11:48</th>.*>demand</td>.*>from 180/s to 20/s</td>.*>at once</td>"
    assert re.search(step, page)
    assert "6 records are missing" in page


def test_a_long_log_is_drawn_in_few_points_that_keep_the_worst(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    usual, little = (Usage("gold", admitted, 100, quota=100) for admitted in (100, 1))
    log_of(tmp_path, "broker-1", (1500, usual), (1, little), (1500, usual))
    logs = read_logs(tmp_path)
    table = write(Joined.alone(logs.windows()), "messages", logs.fairness())

    edges_ms, points = charts.gather(read(table), 1000)

    assert len(points.wanted) <= charts.POINTS_MAX
    assert edges_ms[-1] == 3_001_000
    assert np.nanmin(points.lowest) == pytest.approx(0.01)
    assert points.wanted == pytest.approx(100.0)


def test_silence_is_drawn_as_nothing(tmp_path: Path, read_logs: ReadLogs) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(2, Usage("gold", 100, 100, quota=100))
    maker.silent(6)
    maker.rounds(2, Usage("gold", 100, 100, quota=100))
    maker.close()
    logs = read_logs(tmp_path)
    table = write(Joined.alone(logs.windows()), "messages", logs.fairness())

    _, points = charts.gather(read(table), 1000)

    assert points.wanted[:, 0].tolist() == [100, 100, 0, 0, 0, 0, 0, 0, 100, 100]
    assert table["start_ms"][0].as_py() == START_MS


def test_red_is_for_starvation_only(tmp_path: Path, read_logs: ReadLogs) -> None:
    dips = LogMaker(tmp_path / "b0", "b0")
    other = LogMaker(tmp_path / "b1", "b1")
    # One window far below its part, as after a step, and never two.
    for number in range(20):
        dips.round(Usage("gold", 10 if number == 9 else 50, 90, quota=100))
        other.round(Usage("gold", 50, 90, quota=100))
    for maker in (dips, other):
        maker.close()
    logs = read_logs(tmp_path)
    fair = logs.found()
    starved = fair | {"group": "tin", "starved_s": 9.0}

    page = render([fair, starved], logs.facts(), [])

    assert fair["lowest_ratio"] < 0.5
    assert page.count('class="bad"') == 1
    # The worst stands first.
    assert page.index('row">tin<') < page.index('row">gold<')
