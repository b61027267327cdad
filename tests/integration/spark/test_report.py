"""The report from end to end: real segments, real Spark, the files that scripts rely on.

Not covered: logs of real daemons (tests/e2e, through `rgd demo`), a remote master.
"""

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from rgd.analysis.asked import EVERYTHING, Asked, TimeRange
from rgd.analysis.errors import DuplicateLog, NothingLogged
from rgd.analysis.report import DRAWN_MAX, PLOTTED_MAX, Summary, run_report
from rgd.analysis.scenarios import parse
from rgd.analysis.schema import WINDOWS
from rgd.analysis.what_if_wording import CAVEAT
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.policies.model import Attachments, Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Kind, Pair
from sim.usage_log import SegmentWriter
from tests.support.browser import new_tab
from tests.support.log_maker import START_MS, LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three brokers: gold unfairly shared, then fairly; trial a doorman's case; free unlimited.

    Broker 3 starts late and restarts; broker 1's records of rounds 40 to 42 are lost, an entry of
    broker 2's is damaged.
    """
    folder = tmp_path_factory.mktemp("logs")
    unfair, fair = (70, 30, 0), (50, 50, 0)
    doorman = ((60, 1000), (50, 50), (10, 10))
    for place in range(3):
        maker = LogMaker(folder / f"broker-{place + 1}", f"broker-{place + 1}")
        if place == 2:
            maker.silent(20)
        for number in range(20 if place == 2 else 0, 60):
            admitted, wanted = doorman[place]
            usages = [
                Usage("trial", admitted, wanted, quota=120, share=admitted, kind=Kind.DISPATCH),
                Usage("free", 5, 5),
            ]
            if place < 2:
                gold = (unfair if number < 30 else fair)[place]
                usages.append(Usage("gold", gold, 70, quota=100, share=gold))
            if place == 0 and 40 <= number < 43:
                maker.lose(1, *usages)
            else:
                maker.round(*usages)
            if place == 2 and number == 45:
                maker.restart()
            if number % 25 == 24:
                maker.roll()
        maker.close()
    damaged = folder / "broker-2" / "00000000000000000000.log"
    stored = bytearray(damaged.read_bytes())
    stored[-1] ^= 0xFF
    damaged.write_bytes(stored)
    return folder


@pytest.fixture(scope="module")
def made(
    log: Path, tmp_path_factory: pytest.TempPathFactory, spark: "SparkSession"
) -> tuple[Path, Summary, list[str]]:
    out = tmp_path_factory.mktemp("report") / "out"
    told: list[str] = []
    asked = Asked(scenarios=parse(["policy=pulsar-shipped", "quota=gold:200"]))
    summary = run_report([str(log)], out, asked=asked, progress=told.append)
    return out, summary, told


Made = tuple[Path, Summary, list[str]]


def group(summary: Summary, name: str) -> dict[str, Any]:
    (found,) = [one for one in summary.groups if one["group"] == name]
    return found


def test_the_summary_is_what_scripts_rely_on(made: Made) -> None:
    out, summary, told = made

    text = json.loads((out / "summary.json").read_bytes())
    assert text == summary.to_json()
    assert [(one["group"], one["kind"], one["dimension"]) for one in text["groups"]] == [
        ("free", "publish", "messages"),
        ("gold", "publish", "messages"),
        ("trial", "dispatch", "messages"),
    ]
    assert len(told) >= 3


def test_figures_computed_by_hand(made: Made) -> None:
    _, summary, _ = made

    gold, trial, free = (group(summary, name) for name in ("gold", "trial", "free"))
    assert (gold["admitted"], gold["wanted"], gold["quota"]) == (100.0, 140.0, 100.0)
    assert (gold["lowest_ratio"], gold["lowest_ratio_broker"]) == (0.6, "broker-2")
    assert gold["jain_mean"] == pytest.approx((4 / 4.64 + 1) / 2, abs=0.01)
    assert gold["utilisation"] == pytest.approx(1.0)
    # Before broker 3 came, broker 1 was owed 70 of 120; from then on everybody had its part.
    assert trial["lowest_ratio"] == pytest.approx(60 / 70, abs=1e-6)
    assert (trial["steps_found"], trial["rounds_to_fair"]) == (1, 0)
    assert [one["admitted"] for one in trial["brokers"]] == pytest.approx([60, 50, 20 / 3])
    assert (free["quota"], free["utilisation"], free["jain_mean"]) == (None, None, None)
    assert free["admitted"] == pytest.approx((40 * 15 + 20 * 10) / 60)


def test_the_log_is_described_with_what_is_wrong_with_it(made: Made) -> None:
    _, summary, _ = made

    facts = summary.to_json()["log"]
    assert facts["brokers"] == ["broker-1", "broker-2", "broker-3"]
    assert (facts["segments"], facts["records"]) == (9, 60 - 3 + 60 - 1 + 40)
    assert (facts["missing_records"], facts["damaged_entries"]) == (3 + 1, 1)
    assert (facts["round_s"], facts["window_s"]) == (1.0, 1.0)
    assert facts["damages"][0]["file"].endswith("broker-2/00000000000000000000.log")
    assert (facts["from_ms"], facts["to_ms"]) == (START_MS + 1000, START_MS + 60_000)


def test_the_windows_are_parquet_that_anybody_reads(made: Made) -> None:
    out, summary, _ = made

    table = pq.read_table(out / "windows")

    assert table.column_names == list(WINDOWS)
    files = [pq.ParquetFile(path) for path in (out / "windows").iterdir()]
    assert max(file.num_row_groups for file in files) == 1, "not one for each of the groups"
    rows = table.to_pylist()
    assert Counter(row["group"] for row in rows) == {"gold": 60, "trial": 60, "free": 60}
    gold = [row for row in rows if row["group"] == "gold"]
    assert sum(row["admitted"] * row["seconds"] for row in gold) == pytest.approx(60 * 100)
    assert sum(row["recovered"] for row in gold) == pytest.approx(3 * 50 + 30)
    early = next(row for row in gold if row["start_ms"] == START_MS)
    assert {one["broker"]: one["part"] for one in early["brokers"]} == {
        "broker-1": 50.0,
        "broker-2": 50.0,
    }
    assert summary.page == str(out / "report.html")


def test_the_page_holds_every_group_and_says_what_is_missing(made: Made) -> None:
    out, _, _ = made

    page = (out / "report.html").read_text(encoding="utf-8")

    for name in ("gold", "trial", "free"):
        assert f'id="{name}-' in page
    assert page.count('role="img"') == 3
    assert "4 records are missing" in page
    assert "1 stretch of the log could not be read" in page
    marks = ('id="found"', 'id="summary"', 'id="when"', 'id="what-if"', 'role="img"')
    places = [page.index(one) for one in marks]
    assert places == sorted(places)


def test_the_terminal_gets_a_row_for_each_group(made: Made) -> None:
    _, summary, _ = made

    assert [row[0] for row in summary.tables[0][1]] == ["free", "gold", "trial"]
    # By hand: of a quota of 200 two brokers that want 70 each get all of it, but for the first rounds, which begin as the log did.
    scenarios = {row[:3]: row[3:5] for row in summary.tables[1][1]}
    assert scenarios["quota=gold:200", "publish", "messages"] == ("140", "99.6 %")
    assert scenarios["the log", "publish", "messages"] == ("100", "71 %")
    assert summary.sentences[-1] == CAVEAT
    # Broker 3 came late: Pulsar's formula would have starved it ever after, and max-min does not.
    starved = {
        one["scenario"]: [of["broker"] for of in one["brokers"] if of["starved_s"] >= 39]
        for one in group(summary, "trial")["what_if"]
    }
    assert starved == {"as logged": [], "policy=pulsar-shipped": ["broker-3"], "quota=gold:200": []}


#: Sorts the groups by what they wanted, least first, and looks for some of them: which are shown, in order.
HAND = """(() => {
const button = document.querySelectorAll("#groups thead button")[3];
button.click();
button.click();
const field = document.getElementById("search");
field.value = "MESSAGES 32";
field.dispatchEvent(new Event("input"));
return [...document.getElementById("groups").tBodies[0].rows]
  .filter((row) => !row.hidden).map((row) => row.cells[0].textContent).join();
})()"""


def log_policies(folder: Path, at_ms: int, **attached: dict[str, str]) -> None:
    """Log what is attached, and a round a second later in which nothing was asked."""
    groups = {group: Group(group) for names in attached.values() for group in names.values()}
    policies = PolicySnapshot(groups, Attachments(**attached))
    writer = SegmentWriter(folder, "other")
    writer.append(PoliciesInForce(Sender("other", 1), policies, 7), at_ms)
    writer.append(RoundRecord(Sender("other", 1), 1, NS_PER_S), at_ms + 1000)
    writer.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, spark: "SparkSession") -> Path:
    """The report of 500 groups of 20 brokers, of which one starves in one group."""
    del spark
    folder = tmp_path_factory.mktemp("large")
    groups = [f"group-{number:03}" for number in range(500)]
    log_policies(
        folder / "log" / "b", START_MS, tenants={f"tenant-of-{one}": one for one in groups}
    )
    for place in range(20):
        name = f"b{place}{300 * 'x' if place == 1 else ''}"
        maker = LogMaker(folder / "log" / f"b{place}", name)
        fair = Usage("", 5, 9, quota=100, share=5, refused_by=(("resource_group", Pair(4)),))
        unfair = fair if place else replace(fair, admitted=1)
        usages = [replace(fair, group=group) for group in groups if group != "group-321"]
        maker.rounds(4, *usages, replace(unfair, group="group-321"))
        maker.close()
    run_report([str(folder / "log")], folder / "out")
    return folder / "out"


def test_one_starved_group_of_500_stands_first_and_nothing_else_is_red(large: Path) -> None:
    page = (large / "report.html").read_text(encoding="utf-8")
    (table,) = re.findall(r'<table id="groups".*?</table>', page, re.DOTALL)
    rows = table.split("<tr>")[2:]
    assert len(rows) == 500
    assert ["group-321" in row for row in rows] == [True] + [False] * 499
    assert ['class="bad"' in row for row in rows] == [True] + [False] * 499
    assert page.count('role="img"') == PLOTTED_MAX
    linked = re.findall(r'href="(groups/\d+.html)"', table)
    assert len(linked) == DRAWN_MAX - PLOTTED_MAX
    assert all((large / file).is_file() for file in linked)
    assert len(page) < 1_000_000
    (tenants,) = re.findall(r'id="tenants".*?</section>', page, re.DOTALL)
    first, *others = tenants.split('<tr><th scope="row"')[1:]
    assert all("resource group 100 %" in row for row in (first, *others))
    assert (len(others), "480 more tenants" in tenants, "-321" in first) == (499, True, True)


async def test_a_browser_shows_sorts_and_searches_the_page_without_complaints(
    large: Path, browser: str
) -> None:
    page = (large / "report.html").as_uri()
    # All want the same, so they stay in the order in which they stood.
    named = [f"group-{number:03}" for number in range(500) if "32" in f"{number:03}"]
    async with new_tab(browser) as tab:
        for width in (320, 1280):
            await tab.look(width)
            await tab.open(page)
            assert await tab.value("document.documentElement.scrollWidth") == width
            order = await tab.value(HAND)
            assert order == ",".join(sorted(named, key=lambda name: name != "group-321"))
        await tab.call("Page.printToPDF")
        assert (tab.console, set(tab.requests)) == ([], {page})


def test_a_time_range_of_a_tenant_has_the_figures_of_its_windows(
    log: Path, made: Made, tmp_path: Path
) -> None:
    attached = {"tenants": {"acme": "gold"}, "namespaces": {"small/one": "free"}}
    log_policies(tmp_path / "log", START_MS + 11_000, **attached)
    within, then = (TimeRange(START_MS + at, START_MS + at + 14_000) for at in (10_001, 35_001))
    asked = Asked(within, tenants=frozenset({"acme"}), compare=then)

    summary = run_report([str(log), str(tmp_path / "log")], tmp_path / "out", asked=asked)

    (gold,) = summary.groups
    assert (gold["group"], gold["admitted"], gold["lowest_ratio"]) == ("gold", 100.0, 0.6)
    assert gold["compared"]["from_ms"] == START_MS + 35_000
    assert summary.facts.is_compared
    # By hand: until round 30 broker 2 had 30 of its 50, and both wanted 70 all the time.
    assert (gold["lowest_ratio_mean"], gold["compared"]["lowest_ratio_mean"]) == (0.6, 1.0)
    assert "gold (publish, messages) wanted 0 % more and got 0 % more" in summary.sentences[-1]
    assert [one["tenant"] for one in summary.to_json()["tenants"]] == ["acme"]
    rows = pq.read_table(tmp_path / "out" / "windows").to_pylist()
    assert {row["start_ms"] for row in rows} == {START_MS + 1000 * n for n in range(10, 24)}
    known = pq.read_table(made[0] / "windows").to_pylist()
    assert all(row in known for row in rows)
    facts = summary.to_json()["log"]
    assert (facts["segments"], facts["missing_records"], facts["open_ends"]) == (4, 0, [])


def test_a_group_that_the_other_range_does_not_know_is_compared_with_nothing(
    log: Path, tmp_path: Path
) -> None:
    maker = LogMaker(tmp_path / "log", "broker-9")
    maker.silent(40)
    for _ in range(10):
        maker.round(Usage("late", 5, 5, quota=100, share=5))
    maker.close()
    within, then = (TimeRange(START_MS + at, START_MS + at + 9000) for at in (40_000, 10_000))
    asked = Asked(within, groups=frozenset({"late"}), compare=then)
    summary = run_report([str(log), str(tmp_path / "log")], tmp_path / "out", asked=asked)
    assert [(one["group"], one["compared"]) for one in summary.groups] == [("late", None)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(TimeRange(START_MS + 10**9)), "no rows between --from and --to"),
        (Asked(compare=TimeRange(START_MS + 10**9)), "no rows between .* of --compare"),
        (
            Asked(groups=frozenset({"gold", "golf"})),
            "no usage of group 'golf' .*; near it are gold",
        ),
        (Asked(groups=frozenset({"free"}), scenarios=parse(["quota=gold:9"])), "usage of gold "),
        (Asked(tenants=frozenset({"acme"})), "attach no group to tenant 'acme'"),
        (Asked(scenarios=parse(["quota=gold:9,quota=golf:9"])), "usage of group 'golf' "),
    ],
)
def test_nothing_of_what_is_asked_is_one_line(
    log: Path, tmp_path: Path, asked: Asked, words: str
) -> None:
    with pytest.raises(NothingLogged, match=words + ".*$"):
        run_report([str(log)], tmp_path / "out", asked=asked)
    assert not (tmp_path / "out").exists()


def test_a_rerun_with_longer_windows_replaces_the_report(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_report([str(log / "broker-1")], out)

    both = [str(log / "broker-1"), str(log / "broker-2")]
    summary = run_report(both, out, window_s=10, asked=Asked(top=1))

    assert [row[0] for row in summary.tables[0][1]] == ["trial"]
    assert (out / "report.html").read_text().count('role="img"') == 1
    gold = group(summary, "gold")
    assert (gold["windows"], gold["rounds_to_fair"]) == (6, None)
    assert json.loads((out / "summary.json").read_bytes())["log"]["window_s"] == 10.0
    assert len(pq.read_table(out / "windows")) == 3 * 6
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "summary.json", "windows"]


def test_the_same_log_twice_is_refused_and_leaves_the_former_report(
    log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run_report([str(log / "broker-3")], out)
    before = (out / "summary.json").read_bytes()
    copy = shutil.copytree(log / "broker-3", tmp_path / "copy")

    early, late = TimeRange(START_MS, START_MS + 40_000), TimeRange(START_MS + 51_000)
    for asked in (EVERYTHING, Asked(early, compare=late)):
        with pytest.raises(DuplicateLog, match="hold the same records of broker 'broker-3'"):
            run_report([str(log / "broker-3"), str(copy)], out, asked=asked)
        # The other time range alone has records twice.
        for segment in sorted(copy.iterdir())[:-1]:
            segment.unlink()

    assert (out / "summary.json").read_bytes() == before
