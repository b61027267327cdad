"""The verdict: what is wrong comes first, then what is short, then how large the cluster is."""

from dataclasses import replace
from typing import Any

from rgd.views.live_model import (
    BacklogsView,
    GoneView,
    MembersView,
    MemberView,
    PressuresView,
    PressureView,
)
from rgd.views.live_words import verdict_of
from tests.support.cases import cases


def member(name: str, age_s: float) -> MemberView:
    return MemberView(name, "rgd", False, 9, age_s, 0, age_s > 1.5, 1.5)


ALL_HERE = MembersView((member("b1", 0), member("b2", 1)), 2, 0, 1, ())
SILENT = replace(ALL_HERE, members=(member("b2", 2), member("b1", 0)), silent=1)
GONE = replace(ALL_HERE, gone=(GoneView("b3", 130), GoneView("b4", 200)))
ROW = PressureView(
    "gold", "publish", "bytes", 1000, 3500, 990, 3.5, 0.97, "b2", (), None, {}, False
)
CALM, SHORT = PressuresView((), 4, 0, 3), PressuresView((ROW,), 4, 1, 3)
NONE, BLOCKED = BacklogsView(0, 0, 0, ()), BacklogsView(9, 2, 0, ())


#: What of a calm daemon that is ready is otherwise, and the verdict.
SEEN = {
    "well": ({}, "good: No demand is above its quota; 2 brokers share 3 groups."),
    "short": (
        {"groups": SHORT},
        "good: Demand is above 1 of 4 quotas, most gold (publish, bytes): 3.5kB/s of 1kB/s, lowest ratio 0.97; "
        "2 brokers share 3 groups.",
    ),
    "starved": (
        {"groups": PressuresView((replace(ROW, lowest=0.33),), 4, 1, 3)},
        "poor: Broker b2 has 0.33 of its fair part of gold; demand is above 1 of 4 quotas, most gold (publish, bytes): "
        "3.5kB/s of 1kB/s, lowest ratio 0.33; 2 brokers share 3 groups.",
    ),
    "silent": (
        {"brokers": SILENT, "backlogs": BLOCKED},
        "bad: No message from b2 for 2 s; publishing to 2 topics is blocked by backlog quotas; "
        "no demand is above its quota; 2 brokers share 3 groups.",
    ),
    "gone": (
        {"brokers": GONE, "degraded": ("tier: away",)},
        "poor: Tier: away; gone for 2 min: b3, and 1 more; no demand is above its quota; 2 brokers share 3 groups.",
    ),
    "expected": (
        {"brokers": replace(ALL_HERE, expected=3)},
        "poor: 3 brokers are expected and 2 are here; no demand is above its quota; 2 brokers share 3 groups.",
    ),
    "not-ready": (
        {"ready": False, "degraded": ("draining",)},
        "bad: This daemon is not ready (draining); no demand is above its quota; 2 brokers share 3 groups.",
    ),
}
CALMLY: dict[str, Any] = {
    "ready": True,
    "degraded": (),
    "brokers": ALL_HERE,
    "groups": CALM,
    "backlogs": NONE,
}


@cases("seen, verdict", SEEN)
def test_the_fact_comes_first(seen: dict[str, Any], verdict: str) -> None:
    found = verdict_of(**CALMLY | seen)
    assert f"{found.level}: {found.text}" == verdict
