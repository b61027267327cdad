"""Cases whose truth was worked out by hand, all in one report by Spark: sums, rates and max-min parts.

Each case is a group; what is wrong with a log is wrong with a broker of its own, named after it. Not covered: what
is said of the groups (test_report), what cannot be corrected (tests/unit/analysis/test_untrue_logs).
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from rgd.analysis.report import Summary, run_report
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.policies.model import Attachments, Group, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Kind
from sim.usage_log import SegmentWriter
from tests.support.log_maker import START_MS, LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

#: When what is asked changes and what goes wrong does (seconds), and the end of the log.
CHANGE_S, END_MS = 14, START_MS + 30_000
#: Windows in which every broker works as its case states: not the ends, nor what goes wrong between.
BEFORE, AFTER = range(2, 11), range(19, 27)

#: Of one broker: admitted, wanted and its max-min part, units a second. Without a quota the part is the demand.
Act = tuple[float, float, float]


@dataclass(frozen=True)
class Case:
    """What the brokers of one group do; `later`: from `CHANGE_S` on."""

    quota: float | None
    acts: dict[str, Act]
    in_bytes: "Case | None" = None
    later: "Case | None" = None
    kind: Kind = Kind.PUBLISH
    #: Whether brokers have ratios.
    judged: bool = True
    policy: SharePolicyName = SharePolicyName.MAX_MIN

    def at(self, second: float) -> "Case":
        return self.later if self.later and second >= CHANGE_S else self

    def usage(self, group: str, broker: str) -> Usage | None:
        if broker not in self.acts:
            return None
        admitted, wanted, _ = self.acts[broker]
        size, wanted_size, _ = self.in_bytes.acts[broker] if self.in_bytes else (0, 0, 0)
        return Usage(
            group,
            admitted,
            wanted,
            self.quota,
            kind=self.kind,
            policy=self.policy,
            admitted_bytes=size,
            wanted_bytes=wanted_size,
            quota_bytes=self.in_bytes.quota if self.in_bytes else None,
        )


def halves(other: str) -> Case:
    """Broker a and another one want 80 each of 100, of which a got 60."""
    return Case(100, {"a": (60, 80, 50), other: (40, 80, 50)})


CASES = {
    "one-within-its-quota": Case(100, {"a": (40, 40, 40)}),
    "one-beyond-its-quota": Case(100, {"a": (100, 250, 100)}),
    "two-of-which-one-got-more": Case(100, {"a": (70, 70, 50), "b": (30, 70, 50)}),
    "the-smaller-is-served-whole": Case(100, {"a": (20, 20, 20), "b": (80, 200, 80)}),
    "doorman": Case(120, {"a": (60, 1000, 60), "b": (50, 50, 50), "c": (10, 10, 10)}),
    "thirds": Case(100, {"a": (100, 100, 100 / 3), "b": (0, 100, 100 / 3), "c": (0, 99, 100 / 3)}),
    "four-levels": Case(100, {"a": (10, 10, 10), "b": (20, 20, 20), "c": (30, 30, 30), "d": (40, 100, 40)}),
    "three-over-the-level": Case(65, {"a": (5, 5, 5), "b": (20, 40, 20), "c": (20, 41, 20), "d": (20, 4000, 20)}),
    "an-exact-fit": Case(100, {"a": (60, 60, 60), "b": (40, 40, 40)}),
    "more-quota-than-demand": Case(1000, {"a": (10, 10, 10), "b": (20, 20, 20)}),
    "unlimited": Case(None, {"a": (10, 50, 50), "b": (70, 70, 70)}, judged=False),
    "blocked": Case(0, {"a": (0, 50, 0), "b": (0, 10, 0)}),
    "less-than-one-unit": Case(0.6, {"a": (0, 1, 0.3), "b": (1, 1, 0.3)}),
    "a-quota-of-fractions": Case(0.001, {"a": (0, 1, 0.001)}),
    "large-numbers": Case(9e9, {"a": (8e9, 1e10, 4.5e9), "b": (1e9, 5e9, 4.5e9)}),
    "one-asks-nothing": Case(100, {"a": (0, 0, 0), "b": (100, 150, 100)}),
    "nobody-got-anything": Case(100, {"a": (0, 90, 50), "b": (0, 80, 50)}),
    "more-than-the-quota-got-through": Case(100, {"a": (90, 90, 50), "b": (60, 60, 50)}),
    "bytes-alone": Case(
        None,
        {"a": (1, 2, 2), "b": (1, 3, 3)},
        Case(1000, {"a": (400, 800, 500), "b": (500, 600, 500)}),
        judged=False,
    ),
    "both-dimensions": Case(
        100, {"a": (60, 100, 200 / 3), "b": (30, 50, 100 / 3)}, Case(1000, {"a": (300, 500, 1000 / 3), "b": (600, 1000, 2000 / 3)})
    ),
    "messages-limit-the-bytes": Case(
        100, {"a": (50, 200, 50), "b": (50, 200, 50)},
        Case(10_000, {"a": (500, 2000, 500), "b": (500, 2000, 500)}, judged=False),
    ),
    "dispatch": Case(100, {"a": (70, 70, 50), "b": (30, 70, 50)}, kind=Kind.DISPATCH),
    "under-steal": Case(100, {"a": (80, 80, 50), "b": (20, 80, 50)}, policy=SharePolicyName.STEAL),
    "under-proportional": Case(100, {"a": (66, 200, 50), "b": (34, 100, 50)}, policy=SharePolicyName.PROPORTIONAL),
    "under-residual": Case(100, {"a": (70, 90, 50), "b": (30, 90, 50)}, policy=SharePolicyName.RESIDUAL),
    "a-quota-falls": Case(100, {"a": (70, 70, 50), "b": (30, 70, 50)}, later=Case(50, {"a": (25, 70, 25), "b": (25, 70, 25)})),
    "a-quota-comes": Case(
        None,
        {"a": (70, 70, 70), "b": (30, 30, 30)},
        judged=False,
        later=Case(40, {"a": (20, 70, 20), "b": (20, 30, 20)}),
    ),
    "demand-moves": Case(100, {"a": (80, 90, 80), "b": (20, 20, 20)}, later=Case(100, {"a": (30, 30, 30), "b": (70, 200, 70)})),
    "one-joins": Case(
        120,
        {"a": (60, 100, 60), "b": (60, 100, 60)},
        later=Case(120, {"a": (60, 100, 40), "b": (60, 100, 40), "c": (0, 100, 40)}),
    ),
    "one-leaves": Case(100, {"a": (50, 100, 50), "b": (50, 100, 50)}, later=Case(100, {"a": (100, 100, 100)})),
    "a-policy-changes": Case(
        100,
        {"a": (70, 70, 50), "b": (30, 70, 50)},
        policy=SharePolicyName.PROPORTIONAL,
        later=Case(100, {"a": (50, 70, 50), "b": (50, 70, 50)}),
    ),
    "twice-the-weight": Case(90, {"heavy": (60, 90, 60), "a": (30, 90, 30)}),
    "twice-the-weight-of-a-small-demand": Case(90, {"heavy": (10, 10, 10), "a": (40, 100, 40), "b": (40, 100, 40)}),
    "a-clock-an-hour-ahead": halves("ahead"),
    "a-clock-twenty-minutes-behind": halves("behind"),
    "a-clock-ten-seconds-behind": halves("late"),
    "rounds-of-1300-ms": halves("odd"),
    "rounds-that-begin-between": halves("shifted"),
    "records-that-were-lost": halves("lossy"),
    "one-byte-in-twenty-damaged": halves("damaged"),
    "a-restart": halves("restarted"),
    "a-process-that-stood-still": halves("stopped"),
    "segments-that-rolled": halves("rolled"),
}  # fmt: skip


def makers(folder: Path) -> dict[str, LogMaker]:
    odd: dict[str, Any] = {
        "heavy": {"weight": 2000},
        "ahead": {"clock_ahead_ms": 3_600_000},
        "behind": {"clock_ahead_ms": -1_200_000},
        "late": {"clock_ahead_ms": -10_000},
        "odd": {"period_ms": 1300},
        "shifted": {"start_ms": START_MS + 400},
    }
    names = sorted({broker for case in CASES.values() for broker in case.acts})
    made = {name: LogMaker(folder / name, name, **odd.get(name, {})) for name in names}
    for maker in made.values():
        maker.peers = [other for other in made.values() if other is not maker]
    return made


#: What happens once to the broker that is named after it.
MISHAPS: dict[str, Callable[[LogMaker], object]] = {
    "restarted": LogMaker.restart,
    "stopped": lambda maker: maker.stand_still(3000),
    "rolled": LogMaker.roll,
}

#: By group and broker, what was admitted and wanted in all: messages, bytes, messages, bytes.
Counted = dict[tuple[str, str], list[float]]


def play(folder: Path) -> Counted:
    """Write the logs of all cases, with what goes wrong in them."""
    counted: Counted = defaultdict(lambda: [0.0] * 4)
    brokers = makers(folder)
    mishaps = MISHAPS.copy()
    while (maker := min(brokers.values(), key=lambda one: one.now_ms)).now_ms < END_MS:
        second = (maker.now_ms - START_MS) / 1000
        if second >= CHANGE_S and (mishap := mishaps.pop(maker.broker, None)):
            mishap(maker)
        usages = [
            usage
            for name, case in CASES.items()
            if (usage := case.at(second).usage(name, maker.broker))
        ]
        for usage in usages:
            for place, rate in enumerate(usage.counted):
                counted[usage.group, maker.broker][place] += rate * maker.period_ms / 1000
        if maker.broker == "lossy" and CHANGE_S <= second < CHANGE_S + 2:
            maker.lose(1, *usages)
        else:
            maker.round(*usages)
    for maker in brokers.values():
        segment = maker.close()
        if maker.broker == "damaged":
            damage(segment)
    return counted


def damage(segment: Path) -> None:
    """Change one byte in twenty, together in the middle."""
    stored = bytearray(segment.read_bytes())
    begin, length = len(stored) // 2, len(stored) // 20
    stored[begin : begin + length] = bytes(byte ^ 0xFF for byte in stored[begin : begin + length])
    segment.write_bytes(stored)


@dataclass(frozen=True)
class Told:
    """What was played, and what the report says of it."""

    counted: Counted
    #: By group and dimension, then by second of the log.
    windows: dict[tuple[str, str], dict[int, dict[str, Any]]]
    summary: Summary


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, spark: "SparkSession") -> Told:
    del spark
    folder = tmp_path_factory.mktemp("truth")
    counted = play(folder / "logs")
    doorman, thirds = groups = ("doorman", "thirds")
    attached = Attachments(
        tenants={"whole": doorman},
        namespaces={"whole/n": thirds, "sum/a": doorman, "sum/b": thirds},
    )
    writer = SegmentWriter(folder / "logs" / "writer", "writer")
    policies = PolicySnapshot({name: Group(name) for name in groups}, attached)
    writer.append(PoliciesInForce(Sender("writer", 1), policies, 7), START_MS + 1000)
    writer.append(RoundRecord(Sender("writer", 1), 1, NS_PER_S), START_MS + 2000)
    writer.close()
    summary = run_report([str(folder / "logs")], folder / "out", window_s=1)
    windows: Any = defaultdict(dict)
    for row in pq.read_table(folder / "out" / "windows").to_pylist():
        windows[row["group"], row["dimension"]][(row["start_ms"] - START_MS) // 1000] = row
    return Told(counted, windows, summary)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_and_nothing_counted_twice(told: Told, name: str) -> None:
    played = {broker: sums for (group, broker), sums in told.counted.items() if group == name}
    for broker, sums in played.items():
        shown = [
            sum(
                one[amount] * row["seconds"]
                for row in told.windows.get((name, dimension), {}).values()
                for one in row["brokers"]
                if one["broker"] == broker
            )
            for amount in ("admitted", "wanted")
            for dimension in ("messages", "bytes")
        ]
        assert shown == pytest.approx(sums, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_rates_and_parts_are_those_worked_out_by_hand(told: Told, name: str) -> None:
    for second in (*BEFORE, *AFTER):
        case = CASES[name].at(second)
        check(case, told.windows[name, "messages"][second])
        if case.in_bytes:
            check(case.in_bytes, told.windows[name, "bytes"][second])


def check(truth: Case, row: dict[str, Any]) -> None:
    assert row["quota"] == truth.quota
    shown = {one["broker"]: one for one in row["brokers"]}
    # A broker that takes no part at this time is in the row for the sake of the others.
    for broker, one in shown.items():
        admitted, wanted, part = truth.acts.get(broker, (0.0, 0.0, 0.0))
        assert (one["admitted"], one["wanted"]) == pytest.approx((admitted, wanted), rel=1e-9)
        assert one["part"] == pytest.approx(part, rel=1e-4, abs=1e-3)
        ratio = admitted / part if truth.judged and part >= 1 else None
        assert one["ratio"] == (ratio and pytest.approx(ratio, rel=1e-4))
    assert shown.keys() >= truth.acts.keys()


def test_what_went_wrong_is_in_the_logs(told: Told) -> None:
    log = told.summary.to_json()["log"]
    assert {one["broker"] for one in log["clocks"]} == {"ahead", "behind", "late"}
    assert {one["broker"] for one in log["silent"]} == {"stopped"}
    assert {one["broker"] for one in log["kills"]} == {"restarted", "writer"}
    assert [Path(one["file"]).parent.name for one in log["damages"]] == ["damaged"]
    assert log["missing_records"] >= 2 + 1


def test_a_tenant_has_the_figures_of_its_group_or_the_sums_of_its_namespaces(told: Told) -> None:
    tenants = told.summary.to_json()["tenants"]
    figures = {one["tenant"]: (one["admitted"], one["wanted"]) for one in tenants}
    assert figures["whole"] == pytest.approx((120, 1060), rel=1e-9)
    assert figures["sum"] == pytest.approx((220, 1359), rel=1e-9)
